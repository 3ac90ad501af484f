// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// Rules T1 to T4 of docs/design.md.
func TestTries(t *testing.T) {
	t.Parallel()
	of := func(token int64) store.AcquireReply {
		reply := granted(token)
		reply.Weight, reply.Limit = 1, 3
		return reply
	}
	busy := store.AcquireReply{Status: store.Held, Holder: "x", Remaining: -1}
	checkRows(t, []row{
		{"the caller of the request leaves", []step{
			{0, arrive("a", try), "acquire o1 try"},
			{0, arrive("b", try), ""},
			{ms, givenUp(1), "a fails: store unreachable: outcome unknown; acquire o1 try"},
			{2 * ms, answer(2, granted(10)), "b has 10; alarm 5s"},
		}, "holding 10 until 13.346s"},
		{"beside readers of this client", []step{
			{0, several, ""},
			{0, arrive("a", reader), "..."},
			{0, answer(1, of(10)), "..."},
			{0, arrive("b", try), "refused: held by another"},
		}, "holding 10 until 13.345s"},
		{"of permits that its client is about to give back", []step{
			{0, several, ""},
			{0, arrive("a", permits(1), minHold(time.Second)), "..."},
			{0, arrive("b", permits(1), minHold(time.Second)), ""},
			{0, answer(1, store.AcquireReply{Status: store.Granted, Grant: store.Grant{Token: 10, Weight: 2}, Limit: 3, WillNotify: true}), "a has 10; b has 10; alarm 5s"},
			{ms, unlock("b"), "lease of b ends: unlocked; alarm 1s"},
			{2 * ms, arrive("c", permits(3)), "..."},
			{3 * ms, arrive("d", permits(2), try), ""},
			{time.Second, leave("c"), "c fails: left; withdraw o2 uncertain; release o1 token=10 rest=1; alarm 5s"},
			{time.Second, left, ""},
			{time.Second, left, "acquire o3 try watch weight=2"},
		}, "holding 10 until 13.345s"},
		{"of more permits, behind one that asks nobody", []step{
			{0, several, ""},
			{0, arrive("a", permits(3)), "..."},
			{0, answer(1, store.AcquireReply{Status: store.Granted, Grant: store.Grant{Token: 10, Weight: 3}, Limit: 3, WillNotify: true}), "..."},
			{0, arrive("b", permits(1)), ""},
			{0, arrive("c", permits(1), func(c *caller) { c.terms.Limit = 5 }, try), "c fails: held by another"},
		}, "holding 10 until 13.345s"},
		{"one request is for all behind the first", []step{
			{0, several, ""},
			{0, arrive("a", permits(1), try), "acquire o1 try watch"},
			{0, arrive("b", permits(1), try), ""},
			{0, arrive("c", permits(1), try), ""},
			{0, answer(1, of(10)), "a has 10; acquire o2 try watch extra=1; alarm 5s"},
		}, "holding 10 until 13.345s"},
		{"beside what its client has, it asks once", []step{
			{0, several, ""},
			{0, arrive("a", permits(1)), "..."},
			{0, answer(1, of(10)), "..."},
			{0, arrive("b", permits(1), future), "..."},
			{0, answer(2, of(20)), "b lies, 20"},
			{time.Second, arrive("c", permits(2), try), "release o2 token=20 requeue o3 try watch weight=2 extra=1 unlimited"},
			{time.Second, answer(3, store.AcquireReply{Status: store.Held, HolderNotified: true}), "c fails: held by another; acquire o4 watch requests"},
			{time.Second, answer(4, of(30)), "..."},
		}, "holding 10 until 14.345s"},
		{"the store could not be asked again", []step{
			{0, arrive("a"), "acquire o1"},
			{0, answer(1, waiting(0)), "..."},
			{2 * time.Second, alarm, "acquire o1; alarm off"},
			{2 * time.Second, answer(2, failed(store.ErrOutcomeUnknown)), "..."},
			{2 * time.Second, arrive("b", try), "refused: store unreachable: outcome unknown"},
		}, "waiting as o1"},
		{"one for less asks for itself", []step{
			{0, arrive("a", permits(2), try), "acquire o1 try watch weight=2"},
			{0, arrive("b", permits(1), try), ""},
			{0, arrive("c", permits(2), try), ""},
			{0, answer(1, busy), "c fails: held by another; a fails: held by another; acquire o2 try watch"},
		}, "waiting as o2"},
		{"after a grace", []step{
			{0, arrive("a"), "acquire o1"},
			{0, answer(1, store.AcquireReply{Status: store.Waiting, Grace: ms, Remaining: -1}), "..."},
			{ms, arrive("b", try), "acquire o1 watch"},
			{ms, arrive("c", try), ""},
			{ms, answer(2, store.AcquireReply{Status: store.Waiting, Holder: "x", Remaining: -1}), "b fails: held by another; c fails: held by another; alarm ~1.5s"},
		}, "waiting as o1"},
		{"behind another kind", []step{
			{0, several, ""},
			{0, arrive("a", permits(1)), "acquire o1 watch"},
			{0, arrive("b", permits(1), try, holder("b")), ""},
			{0, answer(1, of(10)), "a has 10; acquire o2 try watch; alarm 5s"},
			{0, answer(2, of(20)), "b has 20"},
		}, "holding 10 until 13.345s"},
		{"behind others of two kinds", []step{
			{0, several, ""},
			{0, arrive("a", permits(1)), "acquire o1 watch"},
			{0, arrive("b", permits(1), holder("b")), ""},
			{0, arrive("c", permits(1), try, holder("c")), ""},
			{0, answer(1, of(10)), "a has 10; acquire o2 watch; alarm 5s"},
			{0, answer(2, of(20)), "b has 20; c fails: held by another"},
		}, "holding 10 until 13.345s"},
		{"those ahead give up", []step{
			{0, arrive("a"), "acquire o1"},
			{0, arrive("b", holder("b")), ""},
			{0, arrive("c"), ""},
			{0, arrive("d", holder("b")), ""},
			{0, arrive("e", try), ""},
			{0, leave("a"), "a fails: left; withdraw o1 uncertain; acquire o2 watch"},
			{0, leave("b"), "b fails: left; withdraw o2 uncertain; acquire o3 watch"},
			{0, leave("c"), "c fails: left; e fails: held by another; withdraw o3 uncertain; acquire o4"},
		}, "waiting as o4"},
		{"one on other terms leaves", []step{
			{0, arrive("a"), "acquire o1"},
			{0, arrive("b", try, holder("b")), ""},
			{0, leave("a"), "a fails: left; withdraw o1 uncertain requeue o2 try"},
		}, "waiting as o2"},
		{"one on other terms leaves, and the store has no queue", []step{
			{0, noQueue, ""},
			{0, arrive("a"), "acquire o1"},
			{0, arrive("b", try, holder("b")), ""},
			{0, leave("a"), "a fails: left; withdraw o1 uncertain"},
			{0, arrive("c", try, holder("b")), ""},
			{ms, left, "acquire o2 try watch"},
			{ms, answer(2, granted(10)), "b has 10; c fails: held by another; alarm 5s"},
		}, "holding 10 until 13.346s"},
		{"one withdrawal is not answered", []step{
			{0, noQueue, ""},
			{0, arrive("a"), "acquire o1"},
			{0, arrive("b", try, holder("b")), ""},
			{0, arrive("c"), ""},
			{0, leave("a"), "a fails: left; withdraw o1 uncertain"},
			{ms, leftUnknown, "b fails: store unreachable: outcome unknown; acquire o2"},
		}, "waiting as o2"},
		{"none counts", []step{
			{0, arrive("a", limit(2)), "acquire o1"},
			{0, arrive("b", limit(2), try), ""},
			{0, arrive("c", limit(2)), ""},
		}, "waiting as o1"},
		{"a future that nobody receives from is ahead", []step{
			{0, arrive("a", future), "acquire o1 watch requests"},
			{0, arrive("b", try), ""},
			{0, answer(1, granted(10)), "a is idle; b has 10; alarm 250ms"},
		}, "holding 10 until 13.345s"},
	})
}

// A waiter that is refused learns who has the key, or its permits.
func TestHeldError(t *testing.T) {
	t.Parallel()
	refusal := store.AcquireReply{Status: store.Held, Holder: "x", HolderToken: 7, Remaining: time.Minute, Waiters: 2, Used: 2, Limit: 3}
	wait := refusal
	wait.Status, wait.Waiters, wait.Rank = store.Waiting, 0, 1
	checkRows(t, []row{
		{"by the store", []step{
			{0, arrive("a", permits(2), try), "..."},
			{0, arrive("b", try), ""},
			{0, answer(1, refusal), "..."},
			{0, told("a"), "x, token 7, for 1m0s, 2 wait, 2 of 3"},
			{0, told("b"), "x, token 7, for 1m0s, 2 wait, 0 of 0"},
		}, "unused"},
		{"by the answer to another", []step{
			{0, arrive("a"), "..."},
			{0, arrive("b", try), "..."},
			{0, answer(1, wait), "b fails: held by another; alarm ~1.5s"},
			{0, told("b"), "x, token 7, for 1m0s, 2 wait, 0 of 0"},
			{time.Second, arrive("c", try), "refused: held by another"},
			{time.Second, told("c"), "x, token 7, for 59s, 2 wait, 0 of 0"},
		}, "waiting as o1"},
		{"by the answer to another, of permits", []step{
			{0, arrive("a", permits(2)), "..."},
			{0, answer(1, wait), "..."},
			{0, arrive("b", permits(2), try), "..."},
			{0, told("b"), "x, token 7, for 1m0s, 2 wait, 2 of 3"},
		}, "waiting as o1"},
		{"by a lease of this client", heldWith([]with{holder("y")},
			step{time.Second, arrive("b", try), "..."},
			step{time.Second, told("b"), "y, token 10, for 12.345s, 0 wait, 0 of 0"},
		), "holding 10 until 13.345s"},
		{"by permits of this client, of which the newest are named", []step{
			{0, several, ""},
			{0, arrive("a", permits(1), holder("y")), "..."},
			{0, answer(1, block(10, 1)), "..."},
			{0, arrive("b", permits(2), holder("y")), "..."},
			{time.Second, answer(2, block(20, 2)), "..."},
			{time.Second, arrive("c", permits(1), try, holder("y")), "refused: held by another"},
			{time.Second, told("c"), "y, token 20, for 12.345s, 0 wait, 3 of 3"},
		}, "holding 10 until 13.345s"},
	})
}

// T4: a try waits until the store has answered all that its client was giving back when it came, or does in that step.
func TestTriesWaitForWhatIsGivenBack(t *testing.T) {
	t.Parallel()
	checkRows(t, []row{
		{"readers are retained on two terms", []step{
			{0, several, ""},
			{0, arrive("a", reader, retention(time.Minute)), "..."},
			{0, answer(1, followed(10)), "..."},
			{0, arrive("b", reader, retention(time.Minute), lasting(2*ttl)), "..."},
			{0, answer(2, followed(10)), "..."},
			{ms, unlock("a"), "..."},
			{ms, unlock("b"), "..."},
			{time.Second, arrive("c", try), "release o1 token=10; release o2 token=10; alarm off"},
			{2 * time.Second, left, ""},
			{2 * time.Second, left, "acquire o3 try"},
		}, "waiting as o3"},
		{"permits lie on two terms", []step{
			{0, several, ""},
			{0, arrive("a", permits(1), future), "..."},
			{0, answer(1, block(10, 1)), "..."},
			{0, arrive("b", permits(1), future, holder("b")), "..."},
			{0, answer(2, block(20, 1)), "..."},
			{time.Second, arrive("c", permits(3), try, holder("c")), "release o1 token=10; release o2 token=20; alarm off"},
			{time.Second, left, ""},
			{time.Second, left, "acquire o3 try watch weight=3"},
		}, "waiting as o3"},
		{"one withdraws twice", []step{
			{0, noQueue, ""},
			{0, arrive("a"), "..."},
			{0, arrive("b", try, holder("b")), ""},
			{ms, leave("a"), "..."},
			{ms, answer(1, granted(10)), "withdraw o1"},
			{2 * ms, left, ""},
			{2 * ms, left, "acquire o2 try"},
		}, "waiting as o2"},
		{"retention is over", []step{
			{0, arrive("a", retention(time.Second)), "..."},
			{0, answer(1, followed(10)), "..."},
			{ms, unlock("a"), "lease of a ends: unlocked; alarm 1.001s"},
			{ms + time.Second, alarm, "release o1 token=10 clean; alarm off; dropped"},
			{ms + time.Second, arrive("b", try), "..."},
			{2 * time.Second, left, "acquire o2 try"},
		}, "waiting as o2"},
		{"readers end meanwhile", []step{
			{0, several, ""},
			{0, noQueue, ""},
			{0, arrive("a", reader), "..."},
			{0, answer(1, granted(10)), "a has 10; alarm 5s"},
			{0, arrive("w"), "..."},
			{0, arrive("b", reader, try, holder("b")), ""},
			{ms, leave("w"), "..."},
			{ms, unlock("a"), "release o1 token=10; lease of a ends: unlocked; alarm off"},
			{2 * ms, left, ""},
			{2 * ms, left, "acquire o3 try watch"},
		}, "waiting as o3"},
		{"a permit is given back beside one that waits", []step{
			{0, several, ""},
			{0, arrive("x", permits(1)), "..."},
			{0, arrive("y", permits(1)), "..."},
			{0, answer(1, block(10, 2)), "..."},
			{0, arrive("w"), "..."},
			{ms, unlock("x"), "release o1 token=10 rest=1; lease of x ends: unlocked"},
			{ms, arrive("b", permits(1), try, holder("b")), ""},
			{ms, leave("w"), "w fails: left; withdraw o2 uncertain requeue o3 try watch"},
		}, "holding 10 until 13.345s"},
		{"a permit is given back meanwhile, for which it does not wait", []step{
			{0, several, ""},
			{0, noQueue, ""},
			{0, arrive("x", permits(1)), "..."},
			{0, arrive("y", permits(1)), "..."},
			{0, answer(1, block(10, 2)), "..."},
			{0, arrive("w"), "..."},
			{0, arrive("b", permits(1), try, holder("b")), ""},
			{ms, leave("w"), "..."},
			{ms, unlock("x"), "release o1 token=10 rest=1; lease of x ends: unlocked"},
			{2 * ms, left, "acquire o3 try watch"},
			{2 * ms, left, ""},
		}, "holding 10 until 13.345s"},
	})
}
