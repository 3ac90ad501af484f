// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"slices"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// A lock is the state of one key.
type lock struct {
	key     string
	holders []holding // one that is exclusive, or any number that share the key
	queue   []waiter  // by ticket
	limit   int32     // of permits, as SetLimit has left it; 0: none
	at      int       // index in Store.swept; -1: not stored
}

// A holding is what one owner has of the key.
type holding struct {
	owner       string // empty: nobody, it is held back until then
	session     *session
	description string
	share       store.Share
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
// without state gets an empty lock, which [txn.keep] stores if it is used.
func (t *txn) find(key string) *lock {
	k := t.locks[key]
	if k == nil {
		return &lock{key: key, at: -1}
	}
	t.expire(k)
	return k
}

func (t *txn) expire(k *lock) {
	k.holders = slices.DeleteFunc(k.holders, func(h holding) bool { return !t.now.Before(h.until) })
	k.queue = slices.DeleteFunc(k.queue, func(w waiter) bool {
		return w.session.left || !t.now.Before(w.deadline)
	})
}

// keep stores a lock that is in use and forgets any other.
func (t *txn) keep(k *lock) {
	used := k.held() || len(k.queue) > 0 || k.limit > 0
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
		t.keep(k)
		if k.at >= 0 { // otherwise another lock has taken its place
			t.cursor++
		}
	}
}

func (k *lock) held() bool { return len(k.holders) > 0 }

// holding returns what the owner has of the key, or nil.
func (k *lock) holding(owner string) *holding {
	i := slices.IndexFunc(k.holders, func(h holding) bool { return h.owner != "" && h.owner == owner })
	if i < 0 {
		return nil
	}
	return &k.holders[i]
}

// drop removes what the owner has of the key.
func (k *lock) drop(owner string) {
	k.holders = slices.DeleteFunc(k.holders, func(h holding) bool { return h.owner == owner })
}

// heldBack reports whether the key, or a part of it, is held back.
func (k *lock) heldBack() bool {
	return slices.ContainsFunc(k.holders, func(h holding) bool { return h.owner == "" })
}

// lost returns why somebody who had the key in this mode has lost it.
func (k *lock) lost(mode store.Mode) error {
	for _, h := range k.holders {
		if h.owner != "" && (h.share.Mode == store.Exclusive || h.share.Mode != mode) {
			return store.ErrStolen
		}
	}
	return store.ErrExpired // it is free, held back after a release, or others share it
}

// holdBack holds what was held back from everyone until then. The record of its last holder stays
// visible.
func (h *holding) holdBack(until time.Time) {
	h.owner, h.session, h.watch, h.wanted, h.until = "", nil, false, false, until
}

// granted returns the answer to a holder. Once the holder has written back a token, the grant
// continues from that token.
func (k *lock) granted(h *holding) store.AcquireReply {
	rest := h.grant
	rest.Token, rest.Reserved = h.token, max(h.grant.Token+h.grant.Reserved-h.token, 0)
	rest.Weight = h.share.Weight
	return store.AcquireReply{
		Status: store.Granted, Grant: rest, Waiters: len(k.queue), WillNotify: h.wanted, Limit: k.inForce(h.share),
	}
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
