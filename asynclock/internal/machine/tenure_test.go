// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// F3, F6: what lies in a tenure goes to whoever of this client it is in the way of.
func TestFuturesOfTenures(t *testing.T) {
	t.Parallel()
	of := func(n int32) store.AcquireReply {
		reply := followed(10)
		reply.Weight, reply.Limit = n, 3
		return reply
	}
	two := func(more ...step) []step { // of three permits that the client has, a and b lie, and c has one
		return append([]step{
			{0, arrive("c", permits(1)), "..."},
			{0, arrive("a", future, permits(1)), "..."},
			{0, arrive("b", future, permits(1)), "..."},
			{0, answer(1, of(3)), "a lies, 10; b lies, 10; c has 10; alarm 5s"},
		}, more...)
	}
	checkRows(t, []row{
		{"readers lie all at once", []step{
			{0, arrive("a", future, reader), "..."},
			{0, arrive("b", future, reader), ""},
			{0, answer(1, followed(10)), "a lies, 10; b lies, 10; alarm 5s"},
			{time.Second, look("a"), "a has 10"},
			{time.Second, unlock("a"), "lease of a ends: unlocked"},
			{5 * time.Second, alarm, "renew o1 token=10 watch; alarm 13.345s"},
		}, "holding 10 until 13.345s"},
		{"of two tenures that were taken back, the one that nobody has is given back at once", []step{
			{0, several, ""},
			{0, arrive("a", future, reader, maxHold(3*time.Second)), "..."},
			{0, answer(1, granted(10)), "..."},
			{0, arrive("b", future, reader, maxHold(3*time.Second)), "..."},
			{0, answer(2, granted(10)), "b lies, 10"},
			{5 * ms, arrive("c", reader, maxHold(3*time.Second)), "c has 10; release o1 token=10 requeue o3 watch requests unlimited ttl=3.61s grant=3.61s; alarm 3.005s"},
			{3005 * ms, alarm, "lease of c ends: lease lost: maximum hold reached; alarm off; WARN lease lost"},
		}, "waiting as o3"},
		{"a block is looked at when the request of who gets it is due", []step{
			{0, several, ""},
			{0, arrive("a", future, permits(1)), "..."},
			{0, answer(1, of(1)), "..."},
			{ms / 2, arrive("b", future, permits(1)), "..."},
			{ms, answer(2, store.AcquireReply{Status: store.Waiting, WillNotify: true}), "..."},
			{20 * ms, alarm, "a is idle; b lies, 10; withdraw o2; alarm 30ms"},
		}, "holding 10 until 13.345s"},
		{"one that never waits does not cost those in the queue their place in the store", []step{
			{0, several, ""},
			{0, arrive("a", future, permits(3)), "..."},
			{ms, answer(1, of(3)), "..."},
			{ms, arrive("b", future, permits(2)), "..."},
			{ms, arrive("c", future, permits(2)), "acquire o2 watch requests weight=2"},
			{ms + ms/2, arrive("d", try, permits(2)), ""},
		}, "holding 10 until 13.345s"},
		{"what lies in a closed tenure goes to a reader that comes, if nobody has any of it", []step{
			{0, several, ""},
			{0, arrive("a", future, reader), "..."},
			{0, answer(1, followed(10)), "..."},
			{10 * ms, event(store.EventQueued), "alarm 100ms"},
			{20 * ms, arrive("b", future, reader), "a is idle; b lies, 10"},
			{22 * ms, arrive("c", reader), "b is idle; c has 10; alarm 270ms"},
			{22 * ms, arrive("d", reader), "acquire o2 watch requests"},
		}, "holding 10 until 13.345s"},
		{"not if the tenure may last for long in the store", []step{
			{0, several, ""},
			{0, arrive("a", reader), "..."},
			{0, answer(1, followed(10)), "..."},
			{ms, renew("a", time.Minute), "..."},
			{ms, renewed(1, store.RenewReply{}), "..."},
			{2 * ms, join("b", "a", future), "..."},
			{3 * ms, event(store.EventQueued), "..."},
			{4 * ms, unlock("a"), "..."},
			{6 * ms, arrive("c", reader), "acquire o2 watch"},
		}, "holding 10 until 53.396s"},
		{"nor while no server answers", []step{
			{0, several, ""},
			{0, arrive("a", future, reader), "..."},
			{0, answer(1, followed(10)), "..."},
			{10 * ms, missed(false), "..."},
			{260 * ms, alarm, "..."},
			{270 * ms, renewed(1, store.RenewReply{Err: store.ErrUnreachable}), "..."},
			{280 * ms, arrive("b", reader), "acquire o2 watch"},
		}, "holding 10 until 13.345s"},
		{"of two, one goes to it", []step{
			{0, several, ""},
			{0, arrive("a", reader), "..."},
			{0, answer(1, followed(10)), "..."},
			{ms, join("f", "a", future), "..."},
			{10 * ms, event(store.EventQueued), "..."},
			{20 * ms, arrive("b", future, reader), "..."},
			{21 * ms, answer(2, granted(20)), "..."},
			{22 * ms, unlock("a"), "..."},
			{23 * ms, notify(store.Event{Kind: store.EventQueued, Owner: "o2"}), "..."},
			{24 * ms, arrive("c", reader), "f is idle; c has 10"},
		}, "holding 10 until 13.345s"},
		{"what was received in it counts as had, although nobody has looked at it", []step{
			{0, several, ""},
			{0, arrive("a", future, reader), "..."},
			{0, arrive("b", future, reader), "..."},
			{0, answer(1, followed(10)), "..."},
			{10 * ms, event(store.EventQueued), "..."},
			{15 * ms, receive("a"), ""},
			{20 * ms, arrive("c", reader), "a has 10; acquire o2 watch"},
		}, "holding 10 until 13.345s"},
		{"a future that joined a lease stays under it when readers come who share nothing", []step{
			{0, several, ""},
			{0, arrive("a", reader, maxHold(10*time.Second)), "..."},
			{0, answer(1, followed(10)), "..."},
			{ms, join("f", "a", future), "..."},
			{10 * ms, arrive("b", reader, maxHold(10*time.Second)), "acquire o2 watch ttl=12.01s"},
		}, "holding 10 until 10s"},
		{"a reader that comes leaves what lies in a closed tenure beside one who has it", []step{
			{0, several, ""},
			{0, arrive("a", future, reader), "..."},
			{0, arrive("b", reader), "..."},
			{0, answer(1, followed(10)), "..."},
			{10 * ms, event(store.EventQueued), "..."},
			{20 * ms, arrive("c", reader), "acquire o2 watch"},
		}, "holding 10 until 13.345s"},
		{"one that never waits does not take back permits that another waits for", []step{
			{0, several, ""},
			{0, arrive("a", permits(2)), "..."},
			{ms, answer(1, of(3)), "..."},
			{ms, arrive("b", future, permits(1)), "..."},
			{2 * ms, arrive("c", future, permits(2)), "..."},
			{2 * ms, answer(2, store.AcquireReply{Status: store.Waiting, WillNotify: true}), "..."},
			{2 * ms, arrive("d", try, permits(1)), "refused: held by another"},
		}, "holding 10 until 13.345s"},
		{"what lies is not taken back for permits that another waits for", []step{
			{0, several, ""},
			{0, arrive("a", future, permits(1), limit(2)), "..."},
			{ms / 4, answer(1, of(1)), "..."},
			{ms / 2, arrive("b", future, permits(2), limit(2)), "..."},
			{ms / 2, answer(2, store.AcquireReply{Status: store.Waiting, WillNotify: true}), "..."},
			{50 * ms, arrive("c", permits(1), limit(2)), ""},
			{50 * ms, arrive("d", permits(1), limit(2)), "refused: wait queue is full"},
		}, "holding 10 until 13.345s"},
		{"the limit of the queue counts where permits lie, too", []step{
			{0, several, ""},
			{0, arrive("a", future, permits(2), limit(1)), "..."},
			{ms / 4, answer(1, of(2)), "..."},
			{ms / 2, arrive("b", future, permits(1), limit(1)), "..."},
			{ms / 2, answer(2, store.AcquireReply{Status: store.Waiting, WillNotify: true}), "..."},
			{50 * ms, arrive("c", permits(2), limit(1)), "refused: wait queue is full"},
		}, "holding 10 until 13.345s"},
		{"one that never waits is answered when the readers ahead of it have joined", []step{
			{0, several, ""},
			{0, arrive("a", reader), "..."},
			{0, answer(1, followed(10)), "..."},
			{0, arrive("b", future, reader, noRenewal), "..."},
			{0, arrive("c", reader), "..."},
			{0, arrive("d", try, reader, noRenewal), "..."},
			{0, answer(2, granted(20)), "b is idle; c has 10; d has 20; renew o2 token=20 watch; alarm 250ms"},
		}, "holding 10 until 13.345s"},
		{"of several permits that lie, the last one has a millisecond to be received", []step{
			{0, arrive("a", future, permits(2)), "acquire o1 watch requests weight=2"},
			{ms / 2, arrive("b", future, permits(1)), ""},
			{ms, answer(1, of(3)), "a lies, 10; b lies, 10; alarm 5s"},
			{ms + ms/4, arrive("c", future, permits(3)), "alarm 2ms"},
		}, "holding 10 until 13.345s"},
		{"readers give way to a writer elsewhere", []step{
			{0, arrive("a", future, reader), "..."},
			{0, arrive("b", future, reader), ""},
			{0, answer(1, followed(10)), "..."},
			{50 * ms, receive("a"), ""},
			{50 * ms, event(store.EventQueued), "alarm 100ms"},
			{100 * ms, alarm, "b is idle; a has 10; alarm 350ms"},
			{200 * ms, look("a"), ""},
			{200 * ms, unlock("a"), "release o1 token=10; lease of a ends: unlocked"},
		}, "pausing"},
		{"readers give way to a writer of this client at once", []step{
			{0, arrive("a", future, reader), "..."},
			{0, answer(1, followed(10)), "..."},
			{time.Second, arrive("w"), "release o1 token=10 requeue o2 watch; alarm off"},
		}, "waiting as o2"},
		{"the last reader leaves what lies to a writer elsewhere", []step{
			{0, arrive("a", reader), "..."},
			{0, arrive("b", future, reader), ""},
			{0, answer(1, followed(10)), "..."},
			{50 * ms, event(store.EventQueued), "alarm 100ms"},
			{60 * ms, unlock("a"), "lease of a ends: unlocked"},
			{100 * ms, alarm, "b is idle; release o1 token=10; alarm 350ms"},
		}, "pausing"},
		{"readers that nobody has received last if a writer is refused anyway", []step{
			{0, arrive("a", reader), "..."},
			{0, arrive("b", future, reader), ""},
			{0, answer(1, followed(10)), "..."},
			{time.Second, arrive("w", try), "refused: held by another"},
		}, "holding 10 until 13.345s"},
		{"what readers have received is noticed", []step{
			{0, arrive("a", future, reader), "..."},
			{0, arrive("b", future, reader), ""},
			{0, answer(1, followed(10)), "..."},
			{time.Second, receive("a"), ""},
			{5 * time.Second, alarm, "a has 10; renew o1 token=10 watch; alarm 13.345s"},
		}, "holding 10 until 13.345s"},
		{"the last reader leaves", []step{
			{0, arrive("a", future, reader), "..."},
			{0, arrive("b", future, reader), ""},
			{0, answer(1, followed(10)), "..."},
			{time.Second, leave("a"), "a fails: left"},
			{time.Second, leave("b"), "b fails: left; release o1 token=10; alarm off; dropped"},
		}, "unused"},
		{"Close beside a reader", []step{
			{0, arrive("a", reader), "..."},
			{0, arrive("b", future, reader), ""},
			{0, answer(1, followed(10)), "..."},
			{time.Second, turnAway, "b fails: client closed"},
			{time.Second, unlock("a"), "release o1 token=10; lease of a ends: unlocked; alarm off; dropped"},
		}, "unused"},
		{"permits lie only if nobody waits", two(
			step{time.Second, arrive("d", permits(2)), "..."},
			step{time.Second, arrive("e", future, permits(1)), ""},
			step{time.Second, arrive("f", permits(1)), ""},
			step{2 * time.Second, unlock("c"), "lease of c ends: unlocked; e is idle; f has 10"},
		), "holding 10 until 13.345s"},
		{"permits that come free lie", two(
			step{time.Second, arrive("d", permits(2)), "..."},
			step{1001 * ms, unlock("d"), "lease of d ends: unlocked; a lies, 10; b lies, 10; alarm 13.345s"},
		), "holding 10 until 13.345s"},
		{"permits that come free are for who receives", two(
			step{time.Second, arrive("d", permits(2)), "..."},
			step{1001 * ms, arrive("e", permits(1)), "..."},
			step{1001 * ms, arrive("f", permits(1)), "..."},
			step{1001 * ms, receive("b"), ""},
			step{1001 * ms, unlock("d"), "lease of d ends: unlocked; b has 10; e has 10"},
		), "holding 10 until 13.345s"},
		{"a permit that is received meanwhile", two(
			step{time.Second, arrive("d", permits(2)), "..."},
			step{1001 * ms, receiveBetween("b"), ""},
			step{1001 * ms, unlock("d"), "lease of d ends: unlocked; a lies, 10; b has 10; alarm 13.345s"},
		), "holding 10 until 13.345s"},
		{"permits go to who comes", two(
			step{time.Second, arrive("d", permits(2)), "a is idle; b is idle; d has 10; renew o1 token=10 watch weight=3; alarm 1.25s"},
		), "holding 10 until 13.345s"},
		{"permits go to who never waits", two(
			step{time.Second, arrive("d", permits(1), try), "a is idle; d has 10; renew o1 token=10 watch weight=3; alarm 1.001s"},
		), "holding 10 until 13.345s"},
		{"permits are given back for others", two(
			step{time.Second, event(store.EventQueued), "a is idle; b is idle; release o1 token=10 rest=1; alarm 1.25s"},
		), "holding 10 until 13.345s"},
		{"permits lie until the last one is received", two(
			step{time.Second, unlock("c"), "release o1 token=10 rest=2; lease of c ends: unlocked"},
			step{time.Second, look("a"), "a has 10"},
			step{time.Second, unlock("a"), "release o1 token=10 rest=1; lease of a ends: unlocked"},
			step{time.Second, leave("b"), "b fails: left; release o1 token=10; alarm off; dropped"},
		), "unused"},
		{"a permit goes on to a future for which the store is asked", []step{
			{0, several, ""},
			{0, arrive("a", future, permits(1)), "..."},
			{0, answer(1, of(1)), "a lies, 10; alarm 5s"},
			{0, arrive("b", future, permits(1)), "acquire o2 watch requests; alarm 1ms"},
			{0, answer(2, waiting(0)), ""},
			{ms, alarm, "a is idle; b lies, 10; withdraw o2; alarm 11ms"},
			{2 * time.Second, alarm, "renew o1 token=10 watch; alarm 2.001s"},
		}, "holding 10 until 13.345s"},
		{"readers are not in the way of readers on other terms", []step{
			{0, several, ""},
			{0, arrive("a", future, reader), "..."},
			{0, answer(1, followed(10)), "..."},
			{time.Second, arrive("b", reader, holder("other")), "acquire o2 watch"},
		}, "holding 10 until 13.345s"},
		{"a permit goes to who receives, before it lies", []step{
			{0, arrive("a", future, permits(1)), "..."},
			{0, arrive("b", future, permits(1)), "..."},
			{0, receive("b"), ""},
			{0, answer(1, of(1)), "a is idle; b has 10; alarm 250ms"},
		}, "holding 10 until 13.345s"},
	})
}

// A grant ends what its client has and can't have any more. The store has forgotten that, or it is over.
func TestATenureThatTheStoreHasForgotten(t *testing.T) {
	t.Parallel()
	with := func(mode with, more ...step) []step {
		return append([]step{
			{0, several, ""},
			{0, arrive("a", mode, maxHold(10*time.Second)), "..."},
			{0, answer(1, store.AcquireReply{Status: store.Granted, Grant: store.Grant{Token: 10, Weight: 1}, WillNotify: true, Limit: 3}), "..."},
			{time.Second, arrive("w"), "..."},
		}, more...)
	}
	const over, out = "w has 20; lease of a ends: lease lost: %s; alarm 6s; WARN lease lost", "holding 20 until 14.345s"
	checkRows(t, []row{
		{"a reader", with(reader,
			step{2 * time.Second, answer(2, granted(20)), fmt.Sprintf(over, "expired")},
		), out},
		{"a permit", with(permits(1),
			step{2 * time.Second, answer(2, granted(20)), fmt.Sprintf(over, "expired")},
		), out},
		{"a reader that was taken by force", with(reader,
			step{2 * time.Second, notify(store.Event{Kind: store.EventForced, Owner: "o1"}), "..."},
			step{2 * time.Second, answer(2, granted(20)), fmt.Sprintf(over, "unlocked by force")},
		), out},
		{"a reader whose maximum hold is over", with(reader,
			step{10*time.Second + ms, answer(2, granted(20)), fmt.Sprintf(over, "maximum hold reached")},
		), out},
		{"a writer has a share now, and its reader joins beside it", []step{
			{0, several, ""},
			{0, arrive("a", reader), "..."},
			{0, answer(1, granted(10)), "..."},
			{time.Second, arrive("b", reader, holder("other")), "..."},
			{time.Second, answer(2, granted(10)), "b has 10"},
		}, "holding 10 until 14.345s"},
	})
}

// P9: who has nobody to ask asks as soon as somebody may have permits, whatever the step was.
func TestWhoHadNobodyToAsk(t *testing.T) {
	t.Parallel()
	all := followed(10)
	all.Weight, all.Limit = 3, 3
	checkRows(t, []row{
		{"a block is renewed no more", []step{
			{0, several, ""},
			{0, arrive("a", permits(3)), "..."},
			{0, answer(1, all), "..."},
			{0, arrive("b", permits(1)), ""},
			{time.Second, over("a"), "alarm 13.345s"},
			{time.Second, event(store.EventWake), "acquire o2 watch"},
		}, "holding 10 until 13.345s"},
		{"the first of them is served", []step{
			{0, several, ""},
			{0, arrive("a", permits(3)), "..."},
			{0, answer(1, all), "..."},
			{0, arrive("b", permits(3)), ""},
			{0, arrive("writer"), ""},
			{time.Second, unlock("a"), "b has 10; lease of a ends: unlocked; acquire o2; renew o1 token=10 watch weight=3; alarm 13.345s"},
		}, "holding 10 until 13.345s"},
		{"the first of them has left", []step{
			{0, several, ""},
			{0, arrive("a", permits(3)), "..."},
			{0, answer(1, all), "..."},
			{0, arrive("b", permits(3)), ""},
			{0, arrive("writer"), ""},
			{time.Second, leave("b"), "b fails: left; acquire o2"},
		}, "holding 10 until 13.345s"},
	})
}

// The store's answer is for the waiter that was the first when it was asked.
func TestATenureThatOpensAdmitsNobodyWhoContends(t *testing.T) {
	t.Parallel()
	checkRows(t, []row{
		{"a grant by message, and a renewal opens the tenure", []step{
			{0, several, ""},
			{0, arrive("a", reader), "acquire o1 watch"},
			{0, message(10), "a has 10; alarm 1.5s"},
			{0, arrive("b", reader), "acquire o2 watch"},
			{0, arrive("writer"), ""},
			{3 * time.Second / 2, alarm, "renew o1 token=10 watch; alarm 4s"},
			{3 * time.Second / 2, renewed(1, store.RenewReply{}), "alarm 6s"},
		}, "holding 10 until 14.845s"},
	})
}
