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
// its [asynclock.Features] is not asked of it; such cases are skipped.
package storetest

import (
	"testing"
	"testing/synctest"

	"github.com/asynclock/asynclock-go/asynclock"
)

// Run runs every case as a parallel subtest, in real time, and returns when all
// are done. Each case calls open for a store of its own; what open starts it has
// to stop by t.Cleanup. Where something has to expire the cases wait for TTLs of
// half a second; where something has to happen they wait up to 20 seconds, so
// that a slow server does not fail.
func Run(t *testing.T, open func(t *testing.T) asynclock.Store) {
	t.Helper()
	t.Run("store", func(t *testing.T) { // ends when its parallel subtests have
		for _, c := range cases() {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.check(t, open)
			})
		}
	})
}

// RunInBubble is [Run] with each case in a [synctest] bubble of its own, where
// time costs nothing. It is for stores that reach no network: open is called
// inside the bubble, and everything that it starts has to end with the case.
func RunInBubble(t *testing.T, open func(t *testing.T) asynclock.Store) {
	t.Helper()
	t.Run("store", func(t *testing.T) {
		for _, c := range cases() {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				skipped := false
				synctest.Test(t, func(t *testing.T) {
					defer func() { skipped = t.Skipped() }() // or the case would count as passed
					c.check(t, open)
				})
				if skipped {
					t.SkipNow()
				}
			})
		}
	})
}

// A testCase is one rule. Its name is the rule in words.
type testCase struct {
	name  string
	needs asynclock.Features
	run   func(*world)
}

func (c testCase) check(t *testing.T, open func(t *testing.T) asynclock.Store) {
	store := open(t)
	has := store.Features()
	if c.needs.FIFO && !has.FIFO {
		t.Skip("by its Features the store has no queue")
	}
	if c.needs.Tokens && !has.Tokens {
		t.Skip("by its Features the store has no tokens")
	}
	c.run(newWorld(t, store))
}

var (
	anyStore = asynclock.Features{}
	queues   = asynclock.Features{FIFO: true}
	tokens   = asynclock.Features{Tokens: true}
)

func cases() []testCase {
	var all []testCase
	for _, some := range [][]testCase{
		holdingCases, renewalCases, queueCases, handoffCases, withdrawalCases, livenessCases,
		tokenCases, eventCases, inspectionCases, keyCases, callCases,
	} {
		all = append(all, some...)
	}
	return all
}
