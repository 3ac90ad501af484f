// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"slices"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// A lock is the state of one key.
type lock struct {
	key string
	holding
	queue []waiter // by ticket
	at    int      // index in Store.swept; -1: not stored
}

// A holding says who has the key. Its zero value is nobody.
type holding struct {
	held        bool
	owner       string // empty: nobody has the key, it is held back until then
	session     *session
	description string
	grant       store.Grant
	token       int64 // the last one known to be used
	until       time.Time
	watch       bool // notify the session when the queue gets its first waiter
	wanted      bool // notify it of each request that is refused
}

// A waiter is a place in the queue: the request with its ticket and its time.
type waiter struct {
	store.AcquireRequest
	session  *session
	since    time.Time
	deadline time.Time // dead, if it sends nothing until then
}

// find returns the lock of key as it is now, without an expired holding and dead waiters. A key
// without state gets an empty lock, which [txn.settle] stores if it is used.
func (t *txn) find(key string) *lock {
	k := t.locks[key]
	if k == nil {
		return &lock{key: key, at: -1}
	}
	t.expire(k)
	return k
}

func (t *txn) expire(k *lock) {
	if k.held && !t.now.Before(k.until) {
		k.holding = holding{}
	}
	k.queue = slices.DeleteFunc(k.queue, func(w waiter) bool {
		return w.session.left || !t.now.Before(w.deadline)
	})
}

// settle stores a lock that is in use and forgets any other.
func (t *txn) settle(k *lock) {
	used := k.held || len(k.queue) > 0
	switch {
	case used && k.at < 0:
		k.at = len(t.swept)
		t.swept = append(t.swept, k)
		t.locks[k.key] = k
	case !used && k.at >= 0:
		last := len(t.swept) - 1
		t.swept[k.at] = t.swept[last]
		t.swept[k.at].at = k.at
		t.swept[last] = nil
		t.swept = t.swept[:last]
		k.at = -1
		delete(t.locks, k.key)
	}
}

// sweep forgets keys that were left to expire and are not requested again. Each call looks at a few
// keys in turn, so no call pays for all.
func (t *txn) sweep() {
	for range min(sweepPerCall, len(t.swept)) {
		if t.cursor >= len(t.swept) {
			t.cursor = 0
		}
		k := t.swept[t.cursor]
		t.expire(k)
		t.settle(k)
		if k.at >= 0 { // otherwise another lock has taken its place
			t.cursor++
		}
	}
}

func (k *lock) heldBy(owner string) bool {
	return k.held && k.owner != "" && k.owner == owner
}

// lost returns why somebody who does not hold the key has lost it.
func (k *lock) lost() error {
	if k.held && k.owner != "" {
		return store.ErrStolen
	}
	return store.ErrExpired // it is free, or held back after a release
}

// holdBack holds the key back from everyone until then. The record of its last holder stays
// visible.
func (k *lock) holdBack(until time.Time) {
	k.owner, k.session, k.watch, k.wanted, k.until = "", nil, false, false, until
}

func (k *lock) remaining(now time.Time) time.Duration {
	if !k.held {
		return 0
	}
	return k.until.Sub(now)
}

// granted returns the answer to the holder. Once the holder has written back a token, the grant
// continues from that token.
func (k *lock) granted() store.AcquireReply {
	rest := store.Grant{Token: k.token, Reserved: max(k.grant.Token+k.grant.Reserved-k.token, 0)}
	return store.AcquireReply{Status: store.Granted, Grant: rest, Waiters: len(k.queue), WillNotify: k.wanted}
}

// place returns owner's index in the queue, or -1.
func (k *lock) place(owner string) int {
	return slices.IndexFunc(k.queue, func(w waiter) bool { return w.Owner == owner })
}

// insert adds w at the place of its ticket. That is the tail, unless w was dropped from the queue
// and comes back.
func (k *lock) insert(w waiter) {
	i := len(k.queue)
	for i > 0 && k.queue[i-1].Ticket > w.Ticket {
		i--
	}
	k.queue = slices.Insert(k.queue, i, w)
}

func (k *lock) pop() waiter {
	w := k.queue[0]
	k.queue = slices.Delete(k.queue, 0, 1)
	return w
}

func (k *lock) withdraw(owner string) {
	if i := k.place(owner); i >= 0 {
		k.queue = slices.Delete(k.queue, i, i+1)
	}
}
