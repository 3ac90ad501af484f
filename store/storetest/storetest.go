// SPDX-License-Identifier: Apache-2.0

// Package storetest is the suite that every [store.Store] has to pass. It uses the store as
// package asynclock does, through sessions, and checks the contract of package store rule by rule.
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Store {
//			store := open(t)          // each case asks for a store of its own,
//			t.Cleanup(store.Close)    // and several at a time
//			return store
//		})
//	}
//
//	func TestAStoreThatIsOnlyDeclaredIsRefused(t *testing.T) {
//		storetest.Zero(t, new(Store))
//	}
//
// The stores that open returns may share one server. Others may use that server too, because every
// case makes up its own keys. Cases about a feature that the store lacks by its [store.Features]
// are left out, not skipped. A store that has everything gets all cases but those about a lack.
//
// To read the code, begin with cases at the end of need.go. Each other file has cases about one
// subject, except world.go and steps.go, which have the parts that cases are made of.
package storetest

import (
	"testing"
	"testing/synctest"

	"github.com/asynclock/asynclock-go/store"
)

// An Option tells [Run] a fact that it can't learn from the store.
type Option func(*suite)

// InBubble gives each case a [synctest] bubble of its own, in which waiting costs no time. It is
// for stores that use no network: open is called inside the bubble, and everything that it starts
// has to end with the case.
func InBubble() Option {
	return func(s *suite) { s.bubble = true }
}

// WithoutMessages is for a store that queues but cannot notify waiters and holders here, for
// example because its server lacks pub-sub. Cases about events are left out. Without this option,
// those cases fail if replies to waiters keep saying, by Recheck, that messages are not reliable.
func WithoutMessages() Option {
	return func(s *suite) { s.silent = true }
}

// Run runs every case as a parallel subtest and returns when all are done. Each case calls open for
// a store of its own. Stop everything that open starts with t.Cleanup. One more store is opened
// first, to read its Features. To let something expire, the cases use TTLs of half a second. To let
// something happen, they wait up to a minute, so that a slow server does not fail.
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
	t.Run("store", func(t *testing.T) { // ends when its parallel subtests have ended
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

// facts reads what a store has.
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
