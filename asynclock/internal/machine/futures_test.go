// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// lies begins a case: the key lies with the future a from the start, with token 10.
func lies(more ...step) []step {
	return append([]step{
		{0, arrive("a", future), "acquire o1 watch requests"},
		{0, answer(1, followed(10)), "a lies, 10; alarm 5s"},
	}, more...)
}

// The receiver owns the lease from that moment. A lease that nobody has received is the client's.
func TestFutures(t *testing.T) {
	t.Parallel()
	x := make(chan struct{})
	checkRows(t, []row{
		{"received at once", []step{
			{0, arrive("a", future), "..."},
			{0, receive("a"), ""},
			{0, answer(1, followed(10)), "a has 10; alarm 5s"},
			{0, look("a"), ""},
		}, "holding 10 until 13.345s"},
		{"received later", lies(
			step{time.Second, look("a"), "a has 10"},
			step{2 * time.Second, look("a"), ""},
		), "holding 10 until 13.345s"},
		{"what lies is renewed", lies(
			step{5 * time.Second, alarm, "renew o1 token=10 watch; alarm 13.345s"},
			step{5 * time.Second, renewed(1, store.RenewReply{}), "alarm 10s"},
		), "holding 10 until 18.345s"},
		{"what lies is renewed, although what was received is not", []step{
			{0, arrive("a", future, noRenewal), "..."},
			{0, answer(1, followed(10)), "a lies, 10; alarm 5s"},
			{5 * time.Second, alarm, "renew o1 token=10 watch; alarm 13.345s"},
			{5 * time.Second, renewed(1, store.RenewReply{}), "alarm 10s"},
			{6 * time.Second, receive("a"), ""},
			{10 * time.Second, alarm, "a has 10; renew o1 token=10 watch; alarm 18.345s"},
			{10 * time.Second, renewed(2, store.RenewReply{}), "alarm 23.345s"},
		}, "holding 10 until 23.345s"},
		{"what was received and not looked at is a lease like any other", lies(
			step{time.Second, receive("a"), ""},
			step{5 * time.Second, alarm, "a has 10; renew o1 token=10 watch; alarm 13.345s"},
			step{6 * time.Second, arrive("b"), ""},
		), "holding 10 until 13.345s"},
		{"received too late to be looked at", lies(
			step{time.Second, receive("a"), ""},
			step{trusted, look("a"), "no lease: lease lost: expired; a fails: lease lost: expired; lease of a ends: lease lost: expired; withdraw o1 token=10; alarm off; dropped; WARN lease lost"},
		), "unused"},
		{"the caller leaves", lies(
			step{time.Second, leave("a"), "a fails: left; release o1 token=10 clean; alarm off; dropped"},
		), "unused"},
		{"the caller leaves after somebody has received", lies(
			step{time.Second, receive("a"), ""},
			step{time.Second, leave("a"), "a has 10"},
		), "holding 10 until 13.345s"},
		{"the caller leaves, and the key passes to the next", []step{
			{0, arrive("a", future, holder("x")), "..."},
			{0, arrive("b"), ""},
			{0, answer(1, followed(10)), "a lies, 10; alarm 1ms"},
			{0, leave("a"), "a fails: left; release o1 token=10 clean requeue o2 unlimited; alarm off"},
		}, "waiting as o2"},
		{"lost while it lies: nobody has lost anything", lies(
			step{time.Second, taken, "acquire o2 watch requests; alarm off"},
			step{time.Second, answer(2, followed(20)), "a lies, 20; alarm 6s"},
		), "holding 20 until 14.345s"},
		{"lost after it was received", lies(
			step{time.Second, receive("a"), ""},
			step{time.Second, taken, "a has 10; lease of a ends: lease lost: unlocked by force; alarm off; dropped; WARN lease lost"},
			step{time.Second, look("a"), "no lease: lease lost: unlocked by force; withdraw o1 token=10"},
		), "unused"},
		{"a token that nobody has seen is used again", lies(
			step{0, arrive("b"), "a is idle; b has 10; alarm 250ms"},
			step{2 * ms, unlock("b"), "lease of b ends: unlocked; a lies, 11; alarm 5s"},
		), "holding 11 until 13.345s"},
		{"a token that nobody has seen suffices", []step{
			{0, arrive("a", future), "..."},
			{0, answer(1, granted(10)), "a lies, 10; alarm 5s"},
			{time.Second, arrive("b"), "a is idle; b has 10; alarm 1.25s"},
		}, "holding 10 until 13.345s"},
		{"idle ones count against the queues limit", []step{
			{0, arrive("a", future, limit(2)), "..."},
			{0, answer(1, followed(10)), "..."},
			{time.Second, arrive("b", limit(2)), "a is idle; b has 10; alarm 1.25s"},
			{time.Second, arrive("c", limit(2)), ""},
			{time.Second, arrive("d", limit(2)), "refused: wait queue is full"},
		}, "holding 10 until 13.345s"},
		{"those of one context count once against the queues limit", []step{
			{0, arrive("a", limit(3)), "..."},
			{0, arrive("b", future, limit(3), under(nil)), ""},
			{0, arrive("d", future, limit(3), under(nil)), ""},
			{0, arrive("c", future, limit(3), under(x)), ""},
			{0, arrive("e", future, limit(3), under(x)), ""},
			{0, arrive("f", future, limit(3)), "refused: wait queue is full"},
			{0, arrive("g", limit(3)), "refused: wait queue is full"},
			{0, leave("d"), "d fails: left"},
			{0, leave("e"), "e fails: left"},
			{0, arrive("h", limit(3)), "refused: wait queue is full"},
			{0, arrive("i", future, limit(3), under(x)), ""},
			{0, leave("c"), "c fails: left"},
			{0, arrive("j", limit(3)), "refused: wait queue is full"},
			{0, leave("i"), "i fails: left"},
			{0, arrive("k", limit(3)), ""},
			{0, arrive("l", limit(3)), "refused: wait queue is full"},
			{0, arrive("m", future, limit(3), under(nil)), ""},
		}, "waiting as o1"},
		{"one that never waits and that another was preferred to", []step{
			{0, arrive("a", future, try), "..."},
			{0, answer(1, followed(10)), "a lies, 10; alarm 5s"},
			{time.Second, arrive("b"), "a fails: held by another; b has 10"},
		}, "holding 10 until 13.345s"},
		{"the holder before is told of its end first", held(
			step{time.Second, arrive("b", future), ""},
			step{time.Second, receive("b"), ""},
			step{time.Second, unlock("a"), "lease of a ends: unlocked; b has 11; renew o1 token=11 watch; alarm 13.345s"},
		), "holding 11 until 13.345s"},
	})
}

// F1: a result that somebody receives at the moment when it is to be taken back is the receiver's.
func TestFuturesReceivedMeanwhile(t *testing.T) {
	t.Parallel()
	const has = "a has 10"
	checkRows(t, []row{
		{"the caller leaves", lies(
			step{time.Second, receiveBetween("a"), ""},
			step{time.Second, leave("a"), has},
		), "holding 10 until 13.345s"},
		{"Close", lies(
			step{time.Second, receiveBetween("a"), ""},
			step{time.Second, turnAway, has},
		), "holding 10 until 13.345s"},
		{"the key is lost", lies(
			step{time.Second, receiveBetween("a"), ""},
			step{time.Second, taken, "a has 10; lease of a ends: lease lost: unlocked by force; alarm off; dropped; WARN lease lost"},
		), "unused"},
		{"another client wants the key", lies(
			step{time.Second, receiveBetween("a"), ""},
			step{time.Second, event(store.EventQueued), has},
		), "holding 10 until 13.345s"},
		{"another of this client comes", lies(
			step{time.Second, receiveBetween("a"), ""},
			step{time.Second, arrive("b"), has},
		), "holding 10 until 13.345s"},
		{"another who receives is looked for", []step{
			{0, arrive("a", future), "..."},
			{0, arrive("b", future), ""},
			{ms, answer(1, followed(10)), "a is idle; b lies, 10; alarm 2ms"},
			{ms, receiveBetween("b"), ""},
			{2 * ms, alarm, "b has 10; alarm 251ms"},
		}, "holding 10 until 13.345s"},
		{"one behind it has come just now", []step{
			{0, arrive("a", future), "..."},
			{ms, arrive("b"), ""},
			{ms, receiveBetween("a"), ""},
			{ms, answer(1, followed(10)), has + "; alarm 5s"},
		}, "holding 10 until 13.345s"},
		{"it is idle", []step{
			{0, arrive("a", future), "..."},
			{0, arrive("b"), ""},
			{ms, answer(1, followed(10)), "a is idle; b has 10; alarm 251ms"},
			{ms, receiveBetween("a"), ""},
			{2 * ms, unlock("b"), "lease of b ends: unlocked; a has 11; alarm 5s"},
		}, "holding 11 until 13.345s"},
		{"it has joined a lease that is unlocked", held(
			step{0, join("f", "a", future), "..."},
			step{0, receiveBetween("f"), ""},
			step{time.Second, unlock("a"), "f has 10; lease of a ends: unlocked"},
		), "holding 10 until 13.345s"},
		{"nobody else pauses for it", lies(
			step{time.Second, arrive("b", future), "..."},
			step{time.Second, receiveBetween("b"), ""},
			step{time.Second, event(store.EventQueued), "b has 10; alarm 1.25s"},
			step{time.Second, unlock("b"), "release o1 token=10 clean requeue o2 watch requests unlimited; lease of b ends: unlocked; alarm off"},
		), "waiting as o2"},
	})
}

// F2: those that somebody receives from come first. The others are idle, and have a turn one after the other.
func TestFuturesOrder(t *testing.T) {
	t.Parallel()
	three := func(more ...step) []step {
		return append([]step{
			{0, arrive("a", future), "..."},
			{0, arrive("b", future), ""},
			{0, arrive("c", future), ""},
		}, more...)
	}
	const all = "a is idle; b is idle; c lies, 10; alarm 2ms"
	checkRows(t, []row{
		{"who receives", three(
			step{ms, receive("b"), ""},
			step{ms, answer(1, followed(10)), "a is idle; b has 10; alarm 251ms"},
		), "holding 10 until 13.345s"},
		{"who waits for nothing else", three(
			step{0, arrive("d"), ""},
			step{ms, answer(1, followed(10)), "a is idle; b is idle; c is idle; d has 10; alarm 251ms"},
		), "holding 10 until 13.345s"},
		{"nobody: it lies with the last", three(
			step{ms, answer(1, followed(10)), all},
		), "holding 10 until 13.345s"},
		{"nobody: it lies with one after the other", three(
			step{ms, answer(1, followed(10)), all},
			step{2 * ms, alarm, "b lies, 10; c is idle; alarm 12ms"},
			step{12 * ms, alarm, "a lies, 10; b is idle; alarm 22ms"},
			step{22 * ms, alarm, "a is idle; c lies, 10; alarm 32ms"},
			step{200 * ms, alarm, "b lies, 10; c is idle; alarm 250ms"},
			step{250 * ms, alarm, "a lies, 10; b is idle; alarm 251ms"},
			step{251 * ms, alarm, "alarm 300ms"},
			step{300 * ms, alarm, "a is idle; c lies, 10; alarm 350ms"},
			step{300*ms + 1, look("c"), "c has 10; alarm 5s"},
		), "holding 10 until 13.345s"},
		{"one of the idle receives", three(
			step{ms, answer(1, followed(10)), all},
			step{ms, receive("a"), ""},
			step{2 * ms, alarm, "c is idle; a has 10; alarm 251ms"},
		), "holding 10 until 13.345s"},
		{"one that has come just now has a millisecond to receive", three(
			step{0, receive("b"), ""},
			step{0, answer(1, followed(10)), "a lies, 10; alarm 1ms"},
			step{ms - 1, arrive("d", future), ""},
			step{ms, alarm, "a is idle; b has 10; alarm 251ms"},
		), "holding 10 until 13.345s"},
		{"one that has come just now has a millisecond before other futures", lies(
			step{ms - 1, arrive("b", future), "alarm 1ms"},
			step{ms, alarm, "a is idle; b lies, 10; alarm 11ms"},
		), "holding 10 until 13.345s"},
		{"one that came before, and has the key only now, has none", []step{
			{0, arrive("a", future), "..."},
			{ms, answer(1, followed(10)), "a lies, 10; alarm 5s"},
			{ms, arrive("b", future), "a is idle; b lies, 10; alarm 2ms"},
		}, "holding 10 until 13.345s"},
		{"one of the idle receives when the key passes on", three(
			step{0, arrive("d"), ""},
			step{ms, answer(1, followed(10)), "..."},
			step{ms, receive("a"), ""},
			step{2 * ms, unlock("d"), "lease of d ends: unlocked; a has 11"},
		), "holding 11 until 13.345s"},
		{"one that has come to what lies has it at once", lies(
			step{time.Second, arrive("b", future), "a is idle; b lies, 10; alarm 1.001s"},
			step{time.Second, arrive("c", try), "b is idle; c has 10; alarm 1.25s"},
		), "holding 10 until 13.345s"},
		{"one that has come to what lies has it before futures in the queue", lies(
			step{ms / 2, arrive("b", future), "alarm 1ms"},
			step{ms, arrive("c", future), "a is idle; c lies, 10; alarm 2ms"},
			step{ms + ms/2, arrive("d", future), ""},
			step{ms + ms/2, arrive("e"), "c is idle; e has 10; alarm 251ms"},
		), "holding 10 until 13.345s"},
		{"one that never waits has it before futures in the queue", lies(
			step{ms / 2, arrive("b", future), "alarm 1ms"},
			step{ms / 2, arrive("c", try), "a is idle; c has 10; alarm 250.5ms"},
		), "holding 10 until 13.345s"},
		{"but not before who receives in the queue, although the alarm is late", lies(
			step{ms / 2, arrive("b", future), "alarm 1ms"},
			step{ms / 2, arrive("c", future), ""},
			step{ms / 2, receive("c"), ""},
			step{ms, arrive("d", future), "a is idle; c has 10; alarm 251ms"},
			step{ms, unlock("c"), "lease of c ends: unlocked; d lies, 11; alarm 2ms"},
		), "holding 11 until 13.345s"},
		{"nor does one that waits for nothing else", lies(
			step{ms / 2, arrive("b", future), "alarm 1ms"},
			step{ms / 2, receive("b"), ""},
			step{ms / 2, arrive("c"), "a is idle; b has 10; alarm 250.5ms"},
		), "holding 10 until 13.345s"},
		{"one that came later has it after who came before, although both receive", lies(
			step{ms / 2, arrive("b", future), "alarm 1ms"},
			step{ms / 2, arrive("c", future), ""},
			step{ms / 2, receive("c"), ""},
			step{ms, arrive("d", future), "a is idle; c has 10; alarm 251ms"},
			step{ms, receive("d"), ""},
			step{2 * ms, arrive("e", future), ""},
			step{2 * ms, receive("e"), ""},
			step{2 * ms, unlock("c"), "lease of c ends: unlocked; d has 11"},
		), "holding 11 until 13.345s"},
		{"nor is one overtaken that is on other terms", lies(
			step{ms / 2, arrive("b", future, holder("other")), "alarm 100ms"},
			step{ms, receive("b"), ""},
			step{50 * ms, arrive("c", holder("other")), "alarm 1ms"},
			step{50 * ms, alarm, "..."},
			step{51 * ms, answer(2, followed(20)), "b has 20"},
		), "holding 20 until 13.395s"},
		{"one that has come has it before futures on other terms, as long as these are patient", lies(
			step{ms / 2, arrive("b", future, holder("other")), "alarm 100ms"},
			step{ms, arrive("c", future), "a is idle; c lies, 10; alarm 2ms"},
			step{100 * ms, arrive("d", future), ""},
			step{100 * ms, alarm, "c is idle; release o1 token=10 clean requeue o2 watch requests unlimited; alarm 350ms"},
		), "waiting as o2"},
		{"on other terms the limit of the queue counts", lies(
			step{ms / 2, arrive("b", future, holder("other"), limit(1)), "alarm 100ms"},
			step{50 * ms, arrive("c", future, holder("other"), limit(1)), "refused: wait queue is full"},
		), "holding 10 until 13.345s"},
		{"a future that comes has its millisecond, although somebody has had the key and another waits", lies(
			step{ms / 2, receive("a"), ""},
			step{ms / 2, look("a"), "a has 10"},
			step{time.Second, arrive("b", future), ""},
			step{time.Second, arrive("c", holder("other")), ""},
			step{time.Second, unlock("a"), "lease of a ends: unlocked; b lies, 11; renew o1 token=11 watch; alarm 1.001s"},
		), "holding 11 until 13.345s"},
		{"nor before who is idle and receives", lies(
			step{ms, arrive("b", future), "a is idle; b lies, 10; alarm 2ms"},
			step{ms, receive("a"), ""},
			step{2 * ms, arrive("c", future), "b is idle; a has 10; alarm 251ms"},
		), "holding 10 until 13.345s"},
		{"who never waits comes before them", lies(
			step{ms, arrive("b", future), "a is idle; b lies, 10; alarm 2ms"},
			step{ms, receive("a"), ""},
			step{2 * ms, arrive("c", future, try), "b is idle; c lies, 10; alarm 3ms"},
		), "holding 10 until 13.345s"},
		{"but not before who waits for nothing else", lies(
			step{ms / 2, arrive("b", future), "alarm 1ms"},
			step{ms / 2, arrive("c", holder("other")), ""},
			step{ms, arrive("d", future), ""},
		), "holding 10 until 13.345s"},
		{"another client has it after its patience, although callers of this client came", lies(
			step{0, event(store.EventRequested), "alarm 100ms"},
			step{0, arrive("b", future), "alarm 1ms"},
			step{0, arrive("c", holder("other")), ""},
			step{400 * ms, alarm, "a is idle; b is idle; release o1 token=10 clean requeue o2 watch requests unlimited; alarm 650ms"},
		), "waiting as o2"},
		{"who never waits comes before them when the store has granted it, too", lies(
			step{0, event(store.EventQueued), "..."},
			step{100 * ms, alarm, "..."},
			step{150 * ms, left, ""},
			step{200 * ms, receive("a"), ""},
			step{200 * ms, arrive("b", try), "..."},
			step{201 * ms, answer(2, followed(20)), "b has 20"},
		), "holding 20 until 13.545s"},
		{"on other terms, through the store", lies(
			step{time.Second, arrive("b", holder("other")), "release o1 token=10 clean requeue o2 watch; alarm off"},
		), "waiting as o2"},
		{"on other terms, and it never waits", lies(
			step{time.Second, arrive("b", holder("other"), try), "release o1 token=10 clean requeue o2 try watch; alarm off"},
		), "waiting as o2"},
		{"one on other terms does not have it, although it receives", []step{
			{0, arrive("a", future, holder("other")), "..."},
			{0, answer(1, followed(10)), "..."},
			{time.Second, event(store.EventQueued), "..."},
			{time.Second, arrive("b"), "acquire o2 watch requests"},
			{time.Second, answer(2, followed(20)), "b has 20"},
			{time.Second, receive("a"), ""},
			{time.Second + ms, unlock("b"), "release o2 token=20 clean; lease of b ends: unlocked"},
		}, "pausing"},
		{"nor does it lie with one on other terms", []step{
			{0, arrive("a", future, holder("other")), "..."},
			{0, answer(1, followed(10)), "..."},
			{time.Second, event(store.EventQueued), "..."},
			{time.Second, arrive("b"), "acquire o2 watch requests"},
			{time.Second, answer(2, followed(20)), "b has 20"},
			{time.Second + ms, unlock("b"), "release o2 token=20 clean; lease of b ends: unlocked"},
		}, "pausing"},
		{"the alarm is late, and the lease has ended", lies(
			step{trusted, arrive("b"), "alarm 1ms"},
			step{trusted, alarm, "acquire o2 watch; alarm off"},
		), "waiting as o2"},
		{"too little trust is left for another", []step{
			{0, arrive("a", future), "..."},
			{0, arrive("b", future), "..."},
			{ms, answer(1, followed(10)), "a is idle; b lies, 10; alarm 2ms"},
			{trusted - 1, alarm, "release o1 token=10 clean requeue o2 watch requests unlimited; alarm off"},
		}, "waiting as o2"},
		{"one that never waits comes before those who wait", []step{
			{0, arrive("a", future, try), "..."},
			{ms, arrive("b", future), ""},
			{ms, answer(1, followed(10)), "a lies, 10; alarm 2ms"},
		}, "holding 10 until 13.345s"},
		{"without renewal: it is renewed once, for the whole TTL", []step{
			{0, arrive("a", future, noRenewal), "..."},
			{0, answer(1, followed(10)), "..."},
			{time.Second, arrive("b", noRenewal), "a is idle; b has 10; renew o1 token=10 watch; alarm 1.25s"},
			{time.Second, renewed(1, store.RenewReply{}), "..."},
			{6 * time.Second, alarm, "..."},
		}, "holding 10 until 14.345s"},
	})
}
