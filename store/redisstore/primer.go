// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// primer is a command that goes to the server ahead of a release, in the same write,
// and changes nothing. With it the next holder is told before the last one is.
//
// Redis writes to nobody before it has run all that it had read, and then first to the
// client that came last to have something to be told: it keeps them in a list that grows
// at its head (clients_pending_write; Valkey does so too). In a release by itself the
// message to the next holder comes before the answer to the last one. So the answer is
// written first, and wakes a process, and the next holder waits meanwhile. The answer to a
// primer puts the last holder on the list before that message.
//
// It costs a command, which a busy server had better be spared and an uncontended key does
// not need. So it is sent when both of these say that it is worth its while:
//
//   - When this session gave the key back last, by a common release, somebody had it then,
//     and nobody waited besides (handoffs). That foretells, as well as can be without asking,
//     that it will be so again. Where many wait for a key, most of a wait is the others'
//     holding, and commands are what there must not be more of.
//   - The store had nothing to do with the server (in a Cluster: with any node) for a while,
//     which is probably asleep then (activity). A key that is handed on more often than that
//     makes it busy.
//
// Releases that are sent together do without: all but the first have an answer ahead of
// them anyway.
func primer(client rueidis.CoreClient, key string) rueidis.Completed {
	// rueidis does not know it for a command that only reads, which it might repeat, and have the
	// release's answer wait for that.
	return client.B().Arbitrary("EXISTS").Keys(key).Build()
}

// handoffs remembers which keys were handed to the only one who waited when they were
// given back last: a bit for all keys of one hash.
type handoffs [128]atomic.Uint32

var handoffsSeed = maphash.MakeSeed()

func (h *handoffs) bit(key string) (word *atomic.Uint32, mask uint32) {
	hash := maphash.String(handoffsSeed, key)
	return &h[hash/32%uint64(len(h))], 1 << (hash % 32)
}

// last reports whether the key was so handed on last time.
func (h *handoffs) last(key string) bool {
	word, mask := h.bit(key)
	return word.Load()&mask != 0
}

// note says whether it was this time.
func (h *handoffs) note(key string, toTheLast bool) {
	word, mask := h.bit(key)
	switch isSet := word.Load()&mask != 0; {
	case toTheLast && !isSet:
		word.Or(mask)
	case !toTheLast && isSet:
		word.And(^mask)
	}
}

// An activity is when the store last had to do with its server: when that answered or failed
// to, or sent a message.
type activity struct {
	began time.Time
	last  atomic.Int64 // how long after that, in nanoseconds
}

// note says that it had so just now.
func (a *activity) note() { a.last.Store(int64(time.Since(a.began))) }

// idle reports whether the server may have gone to sleep since.
func (a *activity) idle() bool {
	return time.Since(a.began)-time.Duration(a.last.Load()) >= time.Millisecond
}
