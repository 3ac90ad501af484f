// SPDX-License-Identifier: Apache-2.0

// Package storetest is the suite that every [store.Store] has to pass. It
// speaks to the store as the core does, through its sessions, and checks what
// the contract in package asynclock promises, rule by rule.
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Store {
//			store := open(t)          // each case asks for a store of its own,
//			t.Cleanup(store.Close)    // and several at a time
//			return store
//		})
//	}
//
// The stores that open returns may share one server, and the server may be in
// use by others: every case makes up its own keys. What a store does not have by
// its [store.Features] is not asked of it: such cases are left out, and not skipped.
// A store that has everything gets all of them.
//
// To read the code, begin with cases at the end of need.go. Each other file has cases
// about one thing, but for world.go and steps.go, which are what they are made of.
package storetest

import (
	"testing"
	"testing/synctest"

	"github.com/asynclock/asynclock-go/store"
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
// about events are left out. Without this option they fail if replies to waiters
// keep saying, by Recheck, that no message can be counted on.
func WithoutMessages() Option {
	return func(s *suite) { s.silent = true }
}

// Run runs every case as a parallel subtest and returns when all are done. Each
// case calls open for a store of its own; what open starts it has to stop by
// t.Cleanup. One more store is opened first, to be asked for its Features. Where
// something has to expire the cases wait for TTLs of half a second; where something
// has to happen they wait up to a minute, so that a slow server does not fail.
func Run(t *testing.T, open func(t *testing.T) store.Store, options ...Option) {
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
	f := s.facts(t)                     // not in a subtest, which the flag -run might leave out
	t.Run("store", func(t *testing.T) { // ends when its parallel subtests have
		for _, c := range casesFor(f) {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				s.run(t, func(t *testing.T, store store.Store) { c.run(newWorld(t, store)) })
			})
		}
	})
}

type suite struct {
	open   func(t *testing.T) store.Store
	bubble bool
	silent bool
}

// facts asks a store what it has.
func (s suite) facts(t *testing.T) (f facts) {
	t.Helper()
	s.run(t, func(_ *testing.T, store store.Store) { f = facts{store.Features(), !s.silent} })
	return f
}

// run opens a store for do.
func (s suite) run(t *testing.T, do func(*testing.T, store.Store)) {
	t.Helper()
	opened := func(t *testing.T) {
		t.Helper()
		store := s.open(t)
		if store == nil {
			t.Fatal("storetest: open returned no store")
		}
		do(t, store)
	}
	if s.bubble {
		synctest.Test(t, opened)
	} else {
		opened(t)
	}
}
