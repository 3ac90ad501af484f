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

// A token is the zxid of the transaction that created the owner's node, times
// 4096. What comes in between is for leases that pass the key on inside a client.
// A zxid is an epoch of 32 bits, one more with each election of a leader, and a
// counter of 32 bits; tokens have room for half a million elections.
const (
	tokenBits = 12
	spare     = 1<<tokenBits - 1
	maxZxid   = math.MaxInt64 >> tokenBits
)

func firstToken(czxid int64) int64 { return min(czxid, maxZxid) << tokenBits }

// grant is what the holder gets.
func (k *lockNode) grant() (store.Grant, error) {
	k.store.mu.Lock()
	czxid := k.czxid
	k.store.mu.Unlock()
	if czxid >= maxZxid {
		return store.Grant{}, fmt.Errorf("%w: zxid %#x is too large to be a token", store.ErrForeignData, czxid)
	}
	return store.Grant{Token: firstToken(czxid), Reserved: spare}, nil
}

// sequenceNumber is the number in a node's name.
func sequenceNumber(name string) (int64, error) { return strconv.ParseInt(sequence(name), 10, 64) }

// describe says who it is that has a node, by its data: our own description, or
// what Java puts there, which is its address.
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
