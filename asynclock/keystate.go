// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"github.com/asynclock/asynclock-go/watchdog"
)

// A keyState is all that a client knows about one key while the key is in use: the waiters in this
// client, and the one thing that this client has in the store. That is either a waiter (contending)
// or the key (holding). The keyState exists from the first caller's arrival to the last one's
// departure.
//
// The shard's mutex guards its fields and everything they refer to: waiters, leases, and the
// methods whose names end in Locked.
type keyState struct {
	entry  watchdog.Entry // the next heartbeat, renewal or deadline
	client *Client
	shard  *shard
	key    string

	waiters waiterQueue

	owner    string        // in the store: the waiter's or the holder's identity
	settings *lockSettings // that the owner was made with

	// At most one of them is set; with neither, the state is out of use.
	attempt *attempt // contending: a waiter, or a request to become one
	holding *holding // holding the key
}

// stateLocked returns the key's state, or makes one.
func (sh *shard) stateLocked(c *Client, key string) (s *keyState, isNew bool) {
	if s = sh.keys[key]; s != nil {
		return s, false
	}
	s = &keyState{client: c, shard: sh, key: key}
	s.entry.Task = s
	sh.keys[key] = s
	c.enter()
	return s, true
}

// forgetOwnerLocked ends the use of the owner id in this client. Later replies and events for this
// owner are ignored.
func (s *keyState) forgetOwnerLocked() {
	if s.attempt != nil {
		s.attempt.settleLocked(nil)
	}
	delete(s.shard.owners, s.owner)
	s.owner = ""
	s.attempt, s.holding = nil, nil
	s.client.watchdog.Remove(&s.entry)
}

// dropLocked removes the state of a key that nobody in this client uses any more.
func (s *keyState) dropLocked() {
	delete(s.shard.keys, s.key)
	s.client.leave()
}

func (s *keyState) lane() int { return s.client.session.Lane(s.key) }

// Fire does the work that is due. It runs on the watchdog's goroutine.
func (s *keyState) Fire(now watchdog.Instant) {
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	switch { // neither: it ended while the watchdog was on its way
	case s.attempt != nil:
		s.attemptDueLocked(now)
	case s.holding != nil:
		s.tickLocked(now)
	}
}
