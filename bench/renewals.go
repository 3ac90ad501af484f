// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
)

// renewals records when a client's renewals are under way. It stands between the client and its
// store.
type renewals struct {
	store.Store

	mu       sync.Mutex
	calls    int // under way
	begun    time.Time
	ended    time.Time
	spans    []span // of ended renewals
	keys     int    // renewed
	commands int    // that carried them
}

func (r *renewals) client(w world) (*asynclockClient, error) {
	store, err := openStore(w)
	if err != nil {
		return nil, err
	}
	r.Store = store
	locks, err := asynclock.New(r, asynclock.WithTTL(w.ttl))
	return &asynclockClient{store, locks}, err
}

// Open puts a session of its own in between.
func (r *renewals) Open(id string, events func(store.Event)) (store.Session, error) {
	s, err := r.Store.Open(id, events)
	return &watchedSession{s, r}, err
}

type watchedSession struct {
	store.Session

	renewals *renewals
}

func (s *watchedSession) Renew(ctx context.Context, batch []store.RenewRequest) []store.RenewReply {
	s.renewals.begin(len(batch))
	replies := s.Session.Renew(ctx, batch)
	s.renewals.end(replies)
	return replies
}

func (r *renewals) begin(requests int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.commands += (requests + 99) / 100 // as redisstore's Renew sends them
	if r.calls == 0 {
		r.begun = time.Now()
	}
	r.calls++
}

func (r *renewals) end(replies []store.RenewReply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range replies {
		if replies[i].Err == nil {
			r.keys++
		}
	}
	r.calls--
	if r.calls == 0 {
		r.ended = time.Now()
		r.spans = append(r.spans, span{r.begun, r.ended})
	}
}

func (r *renewals) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spans, r.keys, r.commands = nil, 0, 0
}

// done returns when renewals were under way, for how many keys, and in how many commands.
func (r *renewals) done() (spans []span, keys, commands int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.spans), r.keys, r.commands
}

// overlaps reports whether a renewal was under way at some time since start.
func (r *renewals) overlaps(start time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls > 0 || r.ended.After(start)
}

// A span is the time of an activity.
type span struct{ Begin, End time.Time }

// meets reports whether s overlaps one of the spans, which are in order and disjoint.
func (s span) meets(spans []span) bool {
	i, _ := slices.BinarySearchFunc(spans, s.Begin, func(other span, t time.Time) int { return other.End.Compare(t) })
	return i < len(spans) && !spans[i].Begin.After(s.End)
}

// total returns the sum of the spans' lengths.
func total(spans []span) (sum time.Duration) {
	for _, s := range spans {
		sum += s.End.Sub(s.Begin)
	}
	return sum
}
