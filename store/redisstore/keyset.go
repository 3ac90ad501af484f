// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"hash/maphash"
	"sync/atomic"
)

// A keySet remembers something about keys: one bit for all keys of the same hash. So it is a hint.
type keySet [128]atomic.Uint32

var keySetSeed = maphash.MakeSeed()

func (k *keySet) bit(key string) (word *atomic.Uint32, mask uint32) {
	hash := maphash.String(keySetSeed, key)
	return &k[hash/32%uint64(len(k))], 1 << (hash % 32)
}

// noted reports whether the key is in the set.
func (k *keySet) noted(key string) bool {
	word, mask := k.bit(key)
	return word.Load()&mask != 0
}

// note puts the key into the set, or takes it out.
func (k *keySet) note(key string, in bool) {
	word, mask := k.bit(key)
	switch isSet := word.Load()&mask != 0; {
	case in && !isSet:
		word.Or(mask)
	case !in && isSet:
		word.And(^mask)
	}
}
