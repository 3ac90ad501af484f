// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// Rules P1 to P10 of docs/design.md. TestFuturesOfTenures is about permits that lie.
func TestPermits(t *testing.T) {
	t.Parallel()
	one := func(more ...step) []step { // a has one of three permits, and b has asked for another
		return append([]step{
			{0, several, ""},
			{0, arrive("a", permits(1)), "acquire o1 watch"},
			{0, answer(1, block(10, 1)), "a has 10; alarm 5s"},
			{0, arrive("b", permits(1)), "acquire o2 watch"},
			{0, answer(2, waiting(0)), "alarm ~1.5s"},
		}, more...)
	}
	all := func(n int32, more ...step) []step { // a has all three permits, and b waits for so many
		return append([]step{
			{0, several, ""},
			{0, arrive("a", permits(3)), "acquire o1 watch weight=3"},
			{0, answer(1, block(10, 3)), "a has 10; alarm 5s"},
			{0, arrive("b", permits(n)), ""},
		}, more...)
	}
	message := notify(store.Event{Kind: store.EventGrant, Grant: store.Grant{Token: 10, Weight: 1}, GrantTTL: grantTTL})
	wake, later := event(store.EventWake), 20*ms // the bounds of what passes inside a client are over
	checkRows(t, []row{
		// P3: the client's own place in the queue is no other client.
		{"the own place is announced", one(
			step{0, notify(store.Event{Kind: store.EventQueued, Owner: "o1", Waiters: 1}), ""},
			step{later, unlock("a"), "b has 10; lease of a ends: unlocked; withdraw o2; alarm 5s"},
		), "holding 10 until 13.345s"},
		{"the own place is counted", one(
			step{5 * time.Second, alarm, "acquire o2 watch; renew o1 token=10 watch; alarm 13.345s"},
			step{5 * time.Second, renewed(1, store.RenewReply{Waiters: 1, Limit: 3}), "alarm 10s"},
			step{5*time.Second + later, unlock("a"), "b has 10; lease of a ends: unlocked; withdraw o2 uncertain"},
		), "holding 10 until 18.345s"},
		// P3: permits pass within bounds if another client waits.
		{"another waits, and the bounds are not over", all(1,
			step{0, event(store.EventQueued), ""},
			step{later / 4, unlock("a"), "release o1 token=10 rest=1; b has 10; lease of a ends: unlocked"},
		), "holding 10 until 13.345s"},
		{"another waits, and the bounds are over", all(1,
			step{0, event(store.EventQueued), ""},
			step{later, unlock("a"), "release o1 token=10 requeue o2 watch unlimited; lease of a ends: unlocked; alarm off"},
		), "waiting as o2"},
		// P8: the place in the queue stays.
		{"the first waiter leaves, and the next one wants more", []step{
			{0, arrive("a", permits(1)), "acquire o1 watch"},
			{0, arrive("b", permits(3)), ""},
			{0, answer(1, waiting(0)), "alarm ~1.5s"},
			{ms, leave("a"), "a fails: left; acquire o1 watch weight=3"},
			{2 * ms, message, "withdraw o1 uncertain; acquire o2 watch weight=3; alarm off"},
		}, "waiting as o2"},
		// P9: who has nobody to ask asks once the limit is another.
		{"there are more", all(1,
			step{ms, wake, "renew o1 token=10 watch weight=3; alarm 13.345s"},
			step{2 * ms, renewed(1, store.RenewReply{Limit: 4}), "acquire o2 watch; alarm 5s"},
		), "holding 10 until 13.346s"},
		{"there are too few", all(3,
			step{ms, wake, "renew o1 token=10 watch weight=3; alarm 13.345s"},
			step{2 * ms, renewed(1, store.RenewReply{Limit: 2}), "acquire o2 watch weight=3; alarm 5s"},
			step{3 * ms, answer(2, store.AcquireReply{Status: store.TooMuch, Limit: 2}), "b fails: more permits than there are: 3 are wanted of the 2 that were set"},
		), "holding 10 until 13.346s"},
		{"there are as many", all(3,
			step{ms, wake, "renew o1 token=10 watch weight=3; alarm 13.345s"},
			step{2 * ms, renewed(1, store.RenewReply{Limit: 3}), "alarm 5s"},
		), "holding 10 until 13.346s"},
		// P9: a message does not say the limit, so the block may be of more permits than there are now.
		{"a message granted it, and then there are fewer", []step{
			{0, several, ""},
			{0, arrive("a", permits(1)), "acquire o1 watch"},
			{0, answer(1, waiting(0)), "..."},
			{0, message, "a has 10; alarm 1.5s"},
			{0, arrive("b", permits(1)), "acquire o2 watch"},
			{0, notify(store.Event{Kind: store.EventWake, Owner: "o1"}), "renew o1 token=10 watch; alarm 4s"},
			{0, renewed(1, store.RenewReply{Limit: 3}), "alarm 5s"},
			{ms, unlock("a"), "release o1 token=10; lease of a ends: unlocked; alarm off"},
		}, "waiting as o2"},
	})
}

// P4: permits that go to nobody are given back, and the rest stays.
func TestPermitsThatAreGivenBack(t *testing.T) {
	t.Parallel()
	three := func(more ...step) []step {
		return append([]step{
			{0, several, ""},
			{0, arrive("a", permits(1)), "acquire o1 watch"},
			{0, arrive("b", permits(1)), ""},
			{0, answer(1, block(10, 2)), "a has 10; b has 10; alarm 5s"},
			{time.Second, unlock("a"), "release o1 token=10 rest=1; lease of a ends: unlocked"},
		}, more...)
	}
	checkRows(t, []row{
		{"renewals say what the store has confirmed", three(
			step{5 * time.Second, alarm, "renew o1 token=10 watch weight=2; alarm 13.345s"},
			step{5 * time.Second, renewed(1, store.RenewReply{Limit: 3}), "alarm 10s"},
			step{6 * time.Second, rested(1, store.ReleaseReply{WasHeld: true}), "told: nil"},
			step{10 * time.Second, alarm, "renew o1 token=10 watch; alarm 18.345s"},
		), "holding 10 until 18.345s"},
		{"an answer never comes", three(
			step{2 * time.Second, rested(1, store.ReleaseReply{Err: store.ErrOutcomeUnknown}), "told: outcome unknown"},
			step{5 * time.Second, alarm, "renew o1 token=10 watch; alarm 13.345s"},
		), "holding 10 until 13.345s"},
		{"the store has none", three(
			step{2 * time.Second, rested(1, store.ReleaseReply{Cause: store.ErrExpired}), "told: lease lost: expired; lease of b ends: lease lost: expired; alarm off; dropped; WARN lease lost"},
		), "unused"},
		{"the answer comes after the last lease has ended", three(
			step{2 * time.Second, unlock("b"), "release o1 token=10; lease of b ends: unlocked; alarm off; dropped"},
			step{3 * time.Second, rested(1, store.ReleaseReply{Cause: store.ErrExpired}), "told: nil"},
		), "unused"},
	})
}
