// SPDX-License-Identifier: Apache-2.0

// Package storetest is the suite that every [asynclock.Store] has to pass. It
// speaks to the store as the core does, through its sessions, and checks what
// the contract in package asynclock promises, rule by rule.
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) asynclock.Store {
//			store := open(t)          // each case asks for a store of its own,
//			t.Cleanup(store.Close)    // and several at a time
//			return store
//		})
//	}
//
// The stores that open returns may share one server, and the server may be in
// use by others: every case makes up its own keys. What a store does not have by
// its [asynclock.Features] is not asked of it; such cases are skipped. A store
// that has everything skips none.
//
// To read the code, begin with cases at the end of storetest.go. Each other file has
// cases about one thing, but for world.go and steps.go, which are what they are made of.
package storetest

import (
	"testing"
	"testing/synctest"

	"github.com/asynclock/asynclock-go/asynclock"
)

// An Option tells [Run] what it can't know from the store.
type Option func(*suite)

// InBubble gives each case a [synctest] bubble of its own, where time costs
// nothing. It is for stores that reach no network: open is called inside the
// bubble, and everything that it starts has to end with the case.
func InBubble() Option {
	return func(s *suite) { s.bubble = true }
}

// WithoutMessages is for a store that queues, but has no way here to tell
// waiters and holders anything, say because its server lacks pub-sub: cases
// about events are skipped. Without this option they fail if replies to waiters
// keep saying, by Recheck, that no message can be counted on.
func WithoutMessages() Option {
	return func(s *suite) { s.silent = true }
}

// Run runs every case as a parallel subtest and returns when all are done. Each
// case calls open for a store of its own; what open starts it has to stop by
// t.Cleanup. Where something has to expire the cases wait for TTLs of half a
// second; where something has to happen they wait up to 20 seconds, so that a
// slow server does not fail.
func Run(t *testing.T, open func(t *testing.T) asynclock.Store, options ...Option) {
	t.Helper()
	if open == nil {
		t.Fatal("storetest: open is nil")
	}
	s := suite{open: open}
	for _, o := range options {
		if o == nil {
			t.Fatal("storetest: an option is nil")
		}
		o(&s)
	}
	t.Run("store", func(t *testing.T) { // ends when its parallel subtests have
		for _, c := range cases() {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				s.run(t, c)
			})
		}
	})
}

type suite struct {
	open   func(t *testing.T) asynclock.Store
	bubble bool
	silent bool
}

func (s suite) run(t *testing.T, c testCase) {
	t.Helper()
	if !s.bubble {
		s.check(t, c)
		return
	}
	skipped := false
	synctest.Test(t, func(t *testing.T) {
		defer func() { skipped = t.Skipped() }() // or the case would count as passed
		s.check(t, c)
	})
	if skipped {
		t.SkipNow()
	}
}

func (s suite) check(t *testing.T, c testCase) {
	t.Helper()
	store := s.open(t)
	if store == nil {
		t.Fatal("storetest: open returned no store")
	}
	has := store.Features()
	switch {
	case c.needs.FIFO && !has.FIFO:
		t.Skip("by its Features the store has no queue")
	case c.needs.Tokens && !has.Tokens:
		t.Skip("by its Features the store has no tokens")
	case c.needs.Wanted && !has.Wanted:
		t.Skip("by its Features the store can't say who wants a key")
	}
	w := newWorld(t, store)
	w.silent = s.silent
	c.run(w)
}

// A testCase is one rule. Its name is the rule in words.
type testCase struct {
	name  string
	needs asynclock.Features
	run   func(*world)
}

var (
	anyStore = asynclock.Features{}
	queues   = asynclock.Features{FIFO: true}
	tokens   = asynclock.Features{Tokens: true}
	wanting  = asynclock.Features{FIFO: true, Wanted: true}
)

func cases() []testCase {
	var all []testCase
	for _, some := range [][]testCase{
		holdingCases, renewalCases, queueCases, handoffCases, withdrawalCases, livenessCases,
		tokenCases, eventCases, wantedCases, inspectionCases, keyCases, callCases,
	} {
		all = append(all, some...)
	}
	return all
}
