// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/asynclock/asynclock-go/store"
)

// A token is the zxid of the transaction that created the owner's node, times 4096. The values in
// between are for leases that pass the key on inside a client. A zxid is an epoch of 32 bits, which
// rises by one with each election of a leader, and a counter of 32 bits. Tokens have room for half
// a million elections.
const (
	tokenBits = 12
	spare     = 1<<tokenBits - 1
	maxZxid   = math.MaxInt64 >> tokenBits
)

func firstToken(czxid int64) int64 { return min(czxid, maxZxid) << tokenBits }

// tokenOf returns the token that others see of a holder, from its node. A reader that was the writer has
// the last token of that writer.
func tokenOf(name string, czxid int64) int64 {
	if of, ok := writerBefore(name); ok {
		return firstToken(of) + spare
	}
	return firstToken(czxid)
}

// grant returns the holder's grant. A reader uses one token. A writer leaves its last one to the
// reader that it may become.
func (k *lockNode) grant() (store.Grant, error) {
	k.store.mu.Lock()
	name, kind, czxid := k.node[strings.LastIndexByte(k.node, '/')+1:], k.kind, k.czxid
	k.store.mu.Unlock()
	if czxid >= maxZxid {
		return store.Grant{}, fmt.Errorf("%w: zxid %#x is too large to be a token", store.ErrForeignData, czxid)
	}
	token := tokenOf(name, czxid)
	switch kind {
	case reader:
		return store.Grant{Token: token, Fence: token}, nil
	case writer:
		return store.Grant{Token: token, Reserved: spare - 1}, nil
	case mutex:
	}
	return store.Grant{Token: token, Reserved: spare}, nil
}

// sequenceNumber returns the number of a node.
func (n node) sequenceNumber() (int64, error) { return strconv.ParseInt(n.number, 10, 64) }

// describe returns the description of a node's owner from the node's data: our own description, or
// Java's, which is its address.
func describe(data []byte) string {
	text := string(data)
	if len(text) > store.MaxDescriptionLen || !utf8.ValidString(text) {
		return "another program"
	}
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return "another program"
		}
	}
	return text
}
