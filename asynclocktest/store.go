// SPDX-License-Identifier: Apache-2.0

// Package asynclocktest is for the tests of programs that use locks: a store in
// memory whose network is as bad as a test wants it. Requests and replies can be
// lost, late, repeated or refused, calls can hang, wake-ups can be dropped,
// delayed, repeated or kept back, a client can be cut off or stand still, and a
// holding can expire at once:
//
//	store := asynclocktest.New()
//	locks, err := asynclock.New(store)
//	…
//	store.Next(asynclocktest.Acquire.On("key"), asynclocktest.LoseReply)
//	stop := store.Every(asynclocktest.Renew.On("key"), asynclocktest.Hang)
//	store.NextEvent(asynclocktest.Kind(store.EventGrant), asynclocktest.Drop)
//	mend := store.Cut(0)
//	store.Expire(ctx, "key")
//
// It works in bubbles of testing/synctest, where the hours of a lease take no
// time; service_test.go in this directory is the test of a small service that
// way. [Wrap] puts the same bad network in front of any other store.
//
// What no rule is about passes unchanged, in the batches it came in. Each
// element of a batch meets its own fault; the call returns when all elements
// have their answers, as calls do. Every request and event is recorded, so that
// a test can count them.
package asynclocktest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A Store is a store behind a bad network. Make one with [New] or [Wrap]; it is safe for
// concurrent use, and rules may be added at any time.
type Store struct {
	inner   store.Store
	joining sync.Mutex // held by Open, so that numbers are in order

	mu         sync.Mutex
	sessions   []*session
	calls      []Call
	events     []Event
	callRules  rules[Match, Fault]
	eventRules rules[EventMatch, EventFault]
	regrant    func(*store.Grant) // or nil
	keys       map[string]string  // of the owners, by their ids
	holders    map[string]string  // the ids of the owners that were granted last, by key
}

var _ store.Store = (*Store)(nil)

// New returns a store in memory behind a network that is good as yet.
func New() *Store { return Wrap(memstore.New()) }

// Wrap returns a store that passes everything on to inner.
func Wrap(inner store.Store) *Store {
	return &Store{
		inner:   inner,
		keys:    make(map[string]string),
		holders: make(map[string]string),
	}
}

// Features are those of the store behind.
func (s *Store) Features() store.Features {
	if s.inner == nil {
		return store.Features{}
	}
	return s.inner.Features()
}

// Open connects one client, on behalf of [asynclock.New]. Clients are numbered
// from 0 in this order.
func (s *Store) Open(id string, events func(store.Event)) (store.Session, error) {
	if s.inner == nil || events == nil {
		return nil, fmt.Errorf("%w: nil store or nil events", asynclock.ErrBadOption)
	}
	s.joining.Lock()
	defer s.joining.Unlock()
	c := &session{store: s, client: len(s.joined()), events: events}
	inner, err := s.inner.Open(id, c.onEvent) // and there may be events at once
	if err != nil {
		return nil, err
	}
	c.inner = inner
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions = append(s.sessions, c)
	return c, nil
}

// joined returns the clients so far, by their numbers.
func (s *Store) joined() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sessions)
}

// Next makes the next requests that match meet the faults, one each, in this
// order. It goes before what [Store.Every] says.
func (s *Store) Next(m Match, faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.callRules.next(m, faults)
}

// Every makes all requests that match meet the fault, until stop is called. The
// rule added last goes first.
func (s *Store) Every(m Match, f Fault) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removal(s.callRules.every(m, f))
}

// NextEvent is [Store.Next] for events.
func (s *Store) NextEvent(m EventMatch, faults ...EventFault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.eventRules.next(m, faults)
}

// EveryEvent is [Store.Every] for events.
func (s *Store) EveryEvent(m EventMatch, f EventFault) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removal(s.eventRules.every(m, f))
}

func (s *Store) removal(remove func()) func() {
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		remove()
	}
}

// Regrant passes every grant from now on, in replies and events, through
// change, unless that is nil. It stands in for a store that counts its tokens in
// another way.
func (s *Store) Regrant(change func(*store.Grant)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.regrant = change
}

// Tell sends client an event that the store never made, if it has joined.
func (s *Store) Tell(client int, e store.Event) {
	if all := s.joined(); client >= 0 && client < len(all) {
		all[client].events(e)
	}
}

// Calls returns the requests so far that match, in the order of their arrival.
func (s *Store) Calls(m Match) []Call {
	s.mu.Lock()
	all := slices.Clone(s.calls)
	s.mu.Unlock()
	return slices.DeleteFunc(all, func(c Call) bool { return !m.picks(c) })
}

// Events returns the events so far that match, whatever became of them, in the
// order in which the store made them.
func (s *Store) Events(m EventMatch) []Event {
	s.mu.Lock()
	all := slices.Clone(s.events)
	s.mu.Unlock()
	return slices.DeleteFunc(all, func(e Event) bool { return !m.picks(e) })
}

// arrive records a request and returns what is to happen to it, or nil.
func (s *Store) arrive(c Call) Fault {
	s.mu.Lock()
	c.At = time.Now()
	s.calls = append(s.calls, c)
	s.mu.Unlock()
	return s.callRules.find(&s.mu, func(m Match) bool { return m.picks(c) })
}

func (s *Store) arriveEvent(e Event) EventFault {
	s.mu.Lock()
	e.At = time.Now()
	s.events = append(s.events, e)
	s.mu.Unlock()
	return s.eventRules.find(&s.mu, func(m EventMatch) bool { return m.picks(e) })
}

// asked remembers what an owner id is for.
func (s *Store) asked(r store.AcquireRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[r.Owner] = r.Key
}

// granted remembers who holds, and applies what Regrant was told.
func (s *Store) granted(id string, g *store.Grant) {
	s.mu.Lock()
	s.holders[s.keys[id]] = id
	regrant := s.regrant
	s.mu.Unlock()
	if regrant != nil {
		regrant(g)
	}
}

// Rules say which faults (F) strike what matches (M).
type rules[M, F any] struct {
	once   []*rule[M, F] // in the order to be used up in
	always []*rule[M, F] // the last one goes first
}

type rule[M, F any] struct {
	match M
	fault F
}

func (r *rules[M, F]) next(match M, faults []F) {
	for _, f := range faults {
		r.once = append(r.once, &rule[M, F]{match, f})
	}
}

func (r *rules[M, F]) every(match M, fault F) (remove func()) {
	added := &rule[M, F]{match, fault}
	r.always = append(r.always, added)
	return func() {
		r.always = slices.DeleteFunc(r.always, func(x *rule[M, F]) bool { return x == added })
	}
}

// find returns the fault for what matches says of a rule's match, and uses it
// up if it strikes once. The mutex guards the rules; it is not held while matches
// runs, which may change them, and whose say counts for the rules as they were.
func (r *rules[M, F]) find(mu *sync.Mutex, matches func(M) bool) (fault F) {
	mu.Lock()
	once, always := slices.Clone(r.once), slices.Clone(r.always)
	mu.Unlock()
	for _, x := range once {
		if matches(x.match) && r.use(mu, x) {
			return x.fault
		}
	}
	for _, x := range slices.Backward(always) {
		if matches(x.match) {
			return x.fault
		}
	}
	return fault
}

// use takes a rule away that strikes once. It reports whether it was still there.
func (r *rules[M, F]) use(mu *sync.Mutex, used *rule[M, F]) bool {
	mu.Lock()
	defer mu.Unlock()
	i := slices.Index(r.once, used)
	if i < 0 {
		return false
	}
	r.once = slices.Delete(r.once, i, i+1)
	return true
}
