// SPDX-License-Identifier: Apache-2.0

// Package asynclocktest is for the tests of programs that use locks: a store in memory behind a
// network with the faults that a test sets. Requests and replies can be lost, late, repeated or
// refused. Calls can hang. Events can be dropped, delayed, repeated or kept back. A client can be
// cut off or stand still, and a holding can expire at once:
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
// It works in bubbles of testing/synctest, in which the hours of a lease take no time.
// service_test.go in this directory tests a small service in this way. [Wrap] puts the same network
// in front of any other store.
//
// Requests and events that match no rule pass unchanged, in their batches. Each element of a batch
// gets its own fault; the call returns when all elements have their answers, as calls do. Every
// request and event is recorded, so that a test can count them.
package asynclocktest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/fortests"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

type mark = fortests.Mark //nolint:unused // embedded, for its method, without an exported field

// A Store is a store behind a faulty network. Make one with [New] or [Wrap]. It is safe for
// concurrent use, and rules may be added at any time. Its clients warn of forgotten leases, unless
// [asynclock.WithLeakDetection] says otherwise.
type Store struct {
	mark //nolint:unused // its method counts

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

var (
	_ store.Store    = (*Store)(nil)
	_ fortests.Store = (*Store)(nil)
)

// New returns a store in memory behind a network that has no faults yet.
func New() *Store { return Wrap(memstore.New()) }

// Wrap returns a store that passes everything on to inner.
func Wrap(inner store.Store) *Store {
	return &Store{
		inner:   inner,
		keys:    make(map[string]string),
		holders: make(map[string]string),
	}
}

// Features returns those of the inner store.
func (s *Store) Features() store.Features {
	if s.inner == nil {
		return store.Features{}
	}
	return s.inner.Features()
}

// Open connects one client; [asynclock.New] calls it. Clients are numbered from 0 in this order.
func (s *Store) Open(id string, events func(store.Event)) (store.Session, error) {
	if s.inner == nil || events == nil {
		return nil, fmt.Errorf("%w: nil store or nil events", asynclock.ErrInvalidOption)
	}
	s.joining.Lock()
	defer s.joining.Unlock()
	c := &session{store: s, client: len(s.joined()), events: events}
	inner, err := s.inner.Open(id, c.onEvent) // events may come at once
	if err != nil {
		return nil, err
	}
	c.inner = inner
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions = append(s.sessions, c)
	return c, nil
}

// joined returns all clients so far, by their numbers.
func (s *Store) joined() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sessions)
}

// Next applies the faults to the next matching requests, one each, in this order. It takes
// precedence over [Store.Every].
func (s *Store) Next(m Match, faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.callRules.next(m, faults)
}

// Every applies the fault to all matching requests until stop is called. The rule added last takes
// precedence.
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

// Regrant passes every later grant, in replies and events, through change. Nil ends this. It
// simulates a store that counts its tokens in another way.
func (s *Store) Regrant(change func(*store.Grant)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.regrant = change
}

// Tell sends the client an event that the store never made, if the client has joined.
func (s *Store) Tell(client int, e store.Event) {
	if all := s.joined(); client >= 0 && client < len(all) {
		all[client].events(e)
	}
}

// Calls returns the matching requests so far, in the order of their arrival.
func (s *Store) Calls(m Match) []Call {
	s.mu.Lock()
	all := slices.Clone(s.calls)
	s.mu.Unlock()
	return slices.DeleteFunc(all, func(c Call) bool { return !m.picks(c) })
}

// Events returns the matching events so far, delivered or not, in the order in which the store made
// them.
func (s *Store) Events(m EventMatch) []Event {
	s.mu.Lock()
	all := slices.Clone(s.events)
	s.mu.Unlock()
	return slices.DeleteFunc(all, func(e Event) bool { return !m.picks(e) })
}

// arrive records a request and returns its fault, or nil.
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

// asked remembers the key of an owner id.
func (s *Store) asked(r store.AcquireRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[r.Owner] = r.Key
}

// granted remembers the holder, and applies the function of Regrant.
func (s *Store) granted(id string, g *store.Grant) {
	s.mu.Lock()
	s.holders[s.keys[id]] = id
	regrant := s.regrant
	s.mu.Unlock()
	if regrant != nil {
		regrant(g)
	}
}

// rules say which faults (F) apply to which requests or events (M).
type rules[M, F any] struct {
	once   []*rule[M, F] // in the order in which they are used up
	always []*rule[M, F] // the last one takes precedence
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

// find returns the fault of the first matching rule, and uses the rule up if it applies once. The
// mutex guards the rules. It is not held while matches runs, because matches may change the rules;
// its result counts for the rules as they were before.
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

// use removes a rule that applies once. It reports whether the rule was still there.
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
