// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/store"
)

// A kind is what the owner of a node takes of the key.
type kind uint8

const (
	mutex  kind = iota + 1 // all of it, as Curator's InterProcessMutex
	writer                 // all of it, as the write lock of Curator's InterProcessReadWriteLock
	reader                 // a part of it, as the read lock there
)

// marks are the texts that Curator puts before the sequence number.
var marks = [...]string{mutex: "lock-", writer: "__WRIT__", reader: "__READ__"}

// Curator marks nodes with a random UUID, to find a node whose creation was not answered.
const (
	protected = "_c_"
	uuidLen   = 36
)

// digest returns a UUID that is derived from the owner's id in such a way that the id can't be read
// from it.
func digest(owner string) uuid.UUID {
	sum := sha256.Sum256([]byte("asynclock " + owner))
	return uuid.UUID(sum[:16])
}

// nodePrefix returns the name of an owner's node without its number.
func nodePrefix(owner string, k kind) string { return prefixOf(digest(owner), 4, k) } // version 4, as Curator's

// restVersion is the version of the UUID in the name of a writer that goes on as a reader.
const restVersion = 8

// restPrefix returns the name of the node with which a writer goes on as a reader, without its number.
// The UUID says by which transaction the writer's node was made, because the token follows from it.
func restPrefix(owner string, czxid int64) string {
	id := digest(owner)
	binary.BigEndian.PutUint64(id[:8], uint64(czxid)>>12<<16|uint64(czxid)&0xfff)
	return prefixOf(id, restVersion, reader)
}

func prefixOf(id uuid.UUID, version byte, k kind) string {
	id[6] = id[6]&0x0f | version<<4
	id[8] = id[8]&0x3f | 0x80
	return protected + id.String() + "-" + marks[k]
}

// writerBefore returns the transaction that made the node of a writer that goes on as a reader, from
// the name of the reader's node. It is not ok for other nodes.
func writerBefore(name string) (czxid int64, ok bool) {
	text, found := strings.CutPrefix(name, protected)
	if k, _ := parse(name); k != reader || !found || len(text) < uuidLen {
		return 0, false
	}
	id, err := uuid.Parse(text[:uuidLen])
	if err != nil || id.Version() != restVersion {
		return 0, false
	}
	bits := binary.BigEndian.Uint64(id[:8])
	return int64(bits>>16<<12 | bits&0xfff), true
}

// sequenceDigits is the length of sequence numbers until they overflow, which is after 2147483648
// nodes below one lock. Only until then is the order of the texts the order of the numbers.
const sequenceDigits = 10

// parse returns the kind of an owner's node, of any program, and the text by which Curator orders
// nodes: the number that the server has put behind the name. Numbers have at least ten characters.
// The kind is zero for other children, which are the locks of keys below.
func parse(name string) (k kind, number string) {
	for k := mutex; k <= reader; k++ {
		i := strings.LastIndex(name, marks[k])
		if i < 0 {
			continue
		}
		number := name[i+len(marks[k]):]
		digits := strings.TrimPrefix(number, "-") // numbers begin with it after an overflow
		if len(number) >= sequenceDigits && strings.Trim(digits, "0123456789") == "" {
			return k, number
		}
	}
	return 0, ""
}

// isNode reports whether a child of a lock is an owner's node.
func isNode(name string) bool {
	k, _ := parse(name)
	return k != 0
}

// A node is an owner's, of any program.
type node struct {
	name   string
	kind   kind
	number string
}

// nodesAmong returns the owners' nodes among the children of a lock in their order, the first holder
// first. A writer of Curator's that also reads has two nodes with one number: first the writer's.
func nodesAmong(children []string) []node {
	nodes := make([]node, 0, len(children))
	for _, name := range children {
		if k, number := parse(name); k != 0 {
			nodes = append(nodes, node{name, k, number})
		}
	}
	slices.SortFunc(nodes, func(a, b node) int {
		return cmp.Or(strings.Compare(a.number, b.number), cmp.Compare(a.kind, b.kind))
	})
	return nodes
}

// inOrder is nodesAmong, unless the order is lost.
func inOrder(children []string) ([]node, error) {
	nodes := nodesAmong(children)
	for _, n := range nodes {
		if len(n.number) != sequenceDigits || n.number[0] == '-' {
			return nil, fmt.Errorf("%w: %q has no proper sequence number", store.ErrForeignData, n.name)
		}
	}
	return nodes, nil
}
