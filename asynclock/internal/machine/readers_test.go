// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// S3, S6: a tenure that was closed admits nobody any more. One that is open is renewed every five seconds at least.
func TestReaders(t *testing.T) {
	t.Parallel()
	checkRows(t, []row{
		{"a writer of this client closes the tenure, also if it gives up", heldWith([]with{reader},
			step{0, several, ""},
			step{0, arrive("w"), "acquire o2"},
			step{0, leave("w"), "w fails: left; withdraw o2 uncertain"},
			step{0, arrive("b", reader), "acquire o3 watch"},
		), "holding 10 until 13.345s"},
		{"the notification of a writer overtakes the grant", []step{
			{0, several, ""},
			{0, arrive("a", reader), "..."},
			{0, event(store.EventQueued), ""},
			{0, answer(1, granted(10)), "..."},
			{0, arrive("b", reader), "acquire o2 watch"},
		}, "holding 10 until 13.345s"},
		{"a long TTL, and the notification of a writer is lost", []step{
			{0, several, ""},
			{0, arrive("a", reader, lasting(time.Hour)), "..."},
			{0, answer(1, granted(10)), "a has 10; alarm 5s"},
			{5 * time.Second, alarm, "renew o1 token=10 ttl=1h0m0s watch; alarm 53m23.995s"},
			{5 * time.Second, renewed(1, store.RenewReply{Waiters: 1}), "alarm 10s"},
			{5 * time.Second, arrive("b", reader, lasting(time.Hour)), "acquire o2 watch ttl=1h0m0s grant=9s waiter=9s"},
		}, "holding 10 until 53m28.995s"},
		{"the store has none of this key", []step{
			{0, arrive("a", reader), "acquire o1 watch"},
			{0, arrive("w"), ""},
			{0, answer(1, failed(store.ErrUnsupported)), "a fails: not supported by the store; withdraw o1 uncertain; acquire o2"},
		}, "waiting as o2"},
		{"the context of one that is unlocked is under nothing", heldWith([]with{reader},
			step{0, arrive("b", reader), "b has 10"},
			step{0, isUnder("a"), "under a: true"},
			step{time.Second, unlock("a"), "lease of a ends: unlocked"},
			step{time.Second, isUnder("a"), "under a: false"},
		), "holding 10 until 13.345s"},
	})
}

// Readers retain a tenure on each terms, by itself.
func TestReadersRetain(t *testing.T) {
	t.Parallel()
	of := func(name string) []with { return []with{reader, retention(time.Minute), holder(name)} }
	two := func(more ...step) []step { // a and b are readers on two terms
		return append([]step{
			{0, several, ""},
			{0, arrive("a", of("one")...), "..."},
			{0, answer(1, granted(10)), "..."},
			{0, arrive("b", of("other")...), "..."},
			{0, answer(2, granted(10)), "..."},
			{0, unlock("a"), "lease of a ends: unlocked"},
		}, more...)
	}
	checkRows(t, []row{
		{"one that joins an open tenure leaves a retained one alone", two(
			step{time.Second, arrive("c", of("other")...), "c has 10"},
		), "retained"},
		{"a writer gets every retained tenure given back", two(
			step{0, unlock("b"), "lease of b ends: unlocked"},
			step{time.Second, arrive("w"), "release o1 token=10 requeue o3; release o2 token=10; alarm off"},
		), "waiting as o3"},
		{"another client retains the key, too, and has time to give it back to a try", heldWith(of("one"),
			step{time.Second, unlock("a"), "lease of a ends: unlocked"},
			step{time.Second, arrive("w", try), "release o1 token=10 requeue o2 try; alarm off"},
			step{time.Second, answer(2, store.AcquireReply{Status: store.Held, HolderNotified: true}), "alarm 1.005s"},
		), "waiting as o2"},
	})
}
