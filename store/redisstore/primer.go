// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"sync/atomic"
	"time"
)

// A primer is a command that goes to the server ahead of a release, in the same write, and changes
// nothing: see Run.Ahead. With it the server notifies the next holder before it answers the last
// one.
//
// Redis runs every command it has read before it writes any reply, and then writes to the
// most recently queued client first: it keeps these clients in a list that grows at its head
// (clients_pending_write; Valkey does so too). A release by itself queues the message to the
// next holder before the answer to the last one. So the answer is written first, and wakes a
// process while the next holder waits. The answer to a primer puts the last holder on the
// list before that message.
//
// A primer costs a command. It would burden a busy server, and an uncontended key does not
// need it. So it is sent only when both of these conditions hold:
//
//   - The session's last release of the key, a common one, handed it to the only waiter
//     (handoffs). This is the best available prediction that the next release will do the
//     same. Where many wait for a key, most of a wait is the others' holding, and more
//     commands would only make it longer.
//   - The store had nothing to do with the server (in a Cluster: with any node) for a while
//     (activity). The server is probably asleep then. A key that is handed on more often
//     keeps the server busy.
//
// Releases that are sent together do without: all but the first have an answer ahead of
// them anyway.

// An activity is when the store last had to do with its server: when the server answered or
// failed to, or sent a message.
type activity struct {
	began time.Time
	last  atomic.Int64 // how long after that, in nanoseconds
}

// note records that the store has to do with the server just now.
func (a *activity) note() { a.last.Store(int64(time.Since(a.began))) }

// idle reports whether the server may have gone to sleep since.
func (a *activity) idle() bool {
	return time.Since(a.began)-time.Duration(a.last.Load()) >= time.Millisecond
}
