// SPDX-License-Identifier: Apache-2.0

package quorumstore

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// maxName is the longest name of a node, in bytes.
const maxName = 128

// A Node is one of the independent stores.
type Node struct {
	// Name is the same in every client, and belongs to one server for ever. It may be a host's. Clients whose nodes
	// have other names are refused.
	Name string
	// Store has queues and tokens, and counts TTLs. It holds locks of this quorum alone.
	Store store.Store
}

// A Store keeps locks on a majority of nodes. Make one with [New].
type Store struct {
	nodes []Node // by name
	set   string // stands for all names

	slack time.Duration // by which nodes may be slower; for tests on busy machines
}

var _ store.Store = (*Store)(nil)

// New returns a store over three nodes, of which one may fail, or five, of which two may. Their order means nothing.
// The error is [store.ErrInvalidOption]: for another number of nodes, for names that are empty, longer than 128 bytes
// or used twice, and for a store that is missing, used twice, or lacks what a node needs.
//
// The stores stay the caller's, who closes them after the clients.
func New(nodes ...Node) (*Store, error) {
	if len(nodes) != 3 && len(nodes) != 5 {
		return nil, invalid("%d nodes, 3 or 5 are allowed", len(nodes))
	}
	nodes = slices.SortedFunc(slices.Values(nodes), func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	names := sha256.New()
	for i, n := range nodes {
		if err := n.check(nodes[:i]); err != nil {
			return nil, err
		}
		fmt.Fprintf(names, "%q", n.Name)
	}
	return &Store{nodes: nodes, set: short(names.Sum(nil))}, nil
}

// check says what is wrong with a node that stands behind these.
func (n Node) check(before []Node) error {
	switch {
	case n.Name == "" || len(n.Name) > maxName:
		return invalid("a node's name has 1 to %d bytes, got %d", maxName, len(n.Name))
	case n.Store == nil:
		return invalid("node %q has no store", n.Name)
	}
	for _, b := range before {
		switch {
		case b.Name == n.Name:
			return invalid("two nodes are named %q", n.Name)
		case b.Store == n.Store:
			return invalid("nodes %q and %q have the same store", b.Name, n.Name)
		}
	}
	if f := n.Store.Features(); !f.Tokens || !f.FIFO || f.Sessions {
		return invalid("the store of node %q has no queues, tokens or TTLs", n.Name)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: quorumstore: "+format, append([]any{store.ErrInvalidOption}, args...)...)
}

// majority is how many nodes make a lease.
func (s *Store) majority() int { return len(s.nodes)/2 + 1 }

// progress says how far the answers of so many nodes go.
func (s *Store) progress(answers int, door bool) progress {
	switch {
	case answers < s.majority():
		return undecided
	case door:
		return decided
	}
	return doorMissing
}

// Features says that the store has tokens and queues, and what all nodes have of retention. It has no readers, permits,
// limits or notes. A queue keeps its order while the same node is the first of its key that answers.
func (s *Store) Features() store.Features {
	f := store.Features{Name: "quorum", Tokens: true, FIFO: true, Retention: true}
	for _, n := range s.nodes {
		f.Retention = f.Retention && n.Store.Features().Retention
	}
	return f
}

// order returns the nodes in the order in which every client asks for the key.
func (s *Store) order(key string) []int {
	order, rank := make([]int, len(s.nodes)), make([]uint64, len(s.nodes))
	for i, n := range s.nodes {
		h := fnv.New64a()
		_, _ = io.WriteString(h, n.Name+"\x00"+key)
		order[i], rank[i] = i, h.Sum64()*0x9E3779B97F4A7C15 // FNV alone mixes its last bytes badly
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(rank[a], rank[b]) })
	return order
}

// A SetError is why a client gets no key: its holder has other nodes, so that both might have a majority. It is a
// [store.ErrInvalidOption].
type SetError struct {
	Node   string // that has shown the holder
	Holder string // the holder's description of itself
}

func (e *SetError) Error() string {
	return fmt.Sprintf("%v: quorumstore: the holder %q, seen on node %q, has other nodes, other names for them, or no quorum", store.ErrInvalidOption, e.Holder, e.Node)
}

// Unwrap returns [store.ErrInvalidOption].
func (e *SetError) Unwrap() error { return store.ErrInvalidOption }

// marked is the beginning of a description on the nodes: "q", the set of nodes, the claim, the token of its lease or 0,
// and a blank.
const (
	hashLen   = 6
	tokenLen  = 16 // in hexadecimal digits
	markedLen = 1 + 2*hashLen + tokenLen + 1
)

// short returns the first letters of a hash.
func short(hash []byte) string { return base64.RawURLEncoding.EncodeToString(hash)[:hashLen] }

// describe puts before a description which nodes its client has, which claim it is, and the token of the lease that it had
// then. Long ones are cut.
func (s *Store) describe(claim string, token int64, description string) string {
	text := fmt.Sprintf("q%s%s%0*x %s", s.set, claim, tokenLen, token, description)
	return strings.ToValidUTF8(text[:min(len(text), store.MaxDescriptionLen)], "")
}

// shown is how a claim is named on the nodes: by a hash, because its owner is secret.
func shown(owner string) string {
	hash := sha256.Sum256([]byte(owner))
	return short(hash[:])
}

// A mark is what describe has put before a description.
type mark struct {
	set, claim string
	token      int64
}

// unmark takes a description apart. Its mark is empty if it has none.
func unmark(text string) (mark, string) {
	if len(text) < markedLen || text[0] != 'q' || text[markedLen-1] != ' ' {
		return mark{}, text
	}
	token, err := strconv.ParseUint(text[1+2*hashLen:markedLen-1], 16, 63)
	if err != nil {
		return mark{}, text
	}
	return mark{text[1 : 1+hashLen], text[1+hashLen : 1+2*hashLen], int64(token)}, text[markedLen:]
}

// meet takes the mark off a holder's description. It returns which claim that is, or finds out that it has other nodes.
func (s *Store) meet(node int, holder string) (claim, text string, err error) {
	m, text := unmark(holder)
	if holder != "" && m.set != s.set {
		return "", text, &SetError{s.nodes[node].Name, text}
	}
	return m.claim, text, nil
}
