// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"fmt"
	"math"
	"strconv"
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

// grant returns the holder's grant.
func (k *lockNode) grant() (store.Grant, error) {
	k.store.mu.Lock()
	czxid := k.czxid
	k.store.mu.Unlock()
	if czxid >= maxZxid {
		return store.Grant{}, fmt.Errorf("%w: zxid %#x is too large to be a token", store.ErrForeignData, czxid)
	}
	return store.Grant{Token: firstToken(czxid), Reserved: spare}, nil
}

// sequenceNumber returns the number in a node's name.
func sequenceNumber(name string) (int64, error) { return strconv.ParseInt(sequence(name), 10, 64) }

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
