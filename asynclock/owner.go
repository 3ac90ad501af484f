// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
)

const shards = 64

// newOwner makes the secret identity of one acquisition: 128 random bits, a dot, and the number of
// the shard that keeps the key in this client. The number is needed to handle an event that names
// only the owner.
func newOwner(shard byte) string {
	var random [16]byte
	rand.Read(random[:]) // never fails, by its documentation
	var text [25]byte
	base64.RawURLEncoding.Encode(text[:22], random[:])
	text[22] = '.'
	hex.Encode(text[23:], []byte{shard})
	return string(text[:])
}

// ownerShard returns the shard number at the end of an owner id. The id is not trusted.
func ownerShard(owner string) (byte, bool) {
	if len(owner) != 25 || owner[22] != '.' {
		return 0, false
	}
	var shard [1]byte
	if _, err := hex.Decode(shard[:], []byte(owner[23:])); err != nil || shard[0] >= shards {
		return 0, false
	}
	return shard[0], true
}
