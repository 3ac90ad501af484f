// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

const (
	gaveUp  = "a fails: store unreachable"
	warning = "WARN waiting for a key failed"
)

// A waiter's patience with a store that fails counts from the first request that failed, or from the waiter's
// arrival. It ends also while a request is under way. A pause of the process does not count.
func TestPatience(t *testing.T) {
	t.Parallel()
	var (
		refused = failed(store.ErrUnreachable)
		silent  = failed(store.ErrOutcomeUnknown)
	)
	begin := func(reply store.AcquireReply, more ...step) []step {
		return append([]step{{0, arrive("a"), "acquire o1"}, {0, answer(1, reply), "alarm ~50ms"}}, more...)
	}
	checkRows(t, []row{
		{"the next request is sent after a pause, with more time", begin(refused,
			step{39 * ms, alarm, "..."}, // early: nothing is sent
			step{61 * ms, alarm, "acquire o1 timeout=2s; alarm 5s"},
			step{61 * ms, answer(2, refused), "alarm ~100ms"},
		), "waiting as o1"},
		{"the answer in time ends the trouble", begin(refused,
			step{61 * ms, alarm, "..."},
			step{100 * ms, answer(2, waiting(1)), "alarm ~1.5s"},
			step{2 * time.Second, alarm, "acquire o1; alarm off"},
		), "waiting as o1"},
		{"it ends while a request is under way", begin(silent,
			step{61 * ms, alarm, "acquire o1 timeout=2s; alarm 5s"},
			step{patience - 1, alarm, "alarm 5s"},
			step{patience, alarm, gaveUp + ": outcome unknown; withdraw o1 uncertain; alarm off; dropped; " + warning},
		), "unused"},
		{"it counts from the sending", []step{
			{0, arrive("a"), "acquire o1"},
			{900 * ms, answer(1, silent), "alarm ~50ms"},
			{961 * ms, alarm, "acquire o1 timeout=2s; alarm 5s"},
		}, "waiting as o1"},
		{"a pause of the process counts as much as the request may take", []step{
			{0, arrive("a"), "acquire o1"},
			{time.Minute, answer(1, silent), "alarm ~50ms"},
			{time.Minute + 61*ms, alarm, "acquire o1 timeout=2s; alarm 1m4s"},
		}, "waiting as o1"},
		{"a pause in an outage is skipped", begin(refused,
			step{61 * ms, alarm, "acquire o1 timeout=2s; alarm 5s"},
			step{61 * ms, answer(2, refused), "alarm ~100ms"},
			step{time.Minute, alarm, "acquire o1 timeout=4s; alarm 1m4.939s"},
		), "waiting as o1"},
		{"each waiter has its own", begin(refused,
			step{61 * ms, alarm, "..."},
			step{time.Second, arrive("b"), ""},
			step{patience, alarm, gaveUp + "; alarm 6s; " + warning},
			step{6 * time.Second, alarm, "b fails: store unreachable; withdraw o1 uncertain; alarm off; dropped; " + warning},
		), "unused"},
		{"each has that of its TTL, also who comes during an outage", begin(refused,
			step{61 * ms, alarm, "..."},
			step{100 * ms, arrive("b", lasting(300*ms)), "alarm 1.1s"},
			step{1100 * ms, alarm, "b fails: store unreachable; alarm 5s; " + warning},
		), "waiting as o1"},
		{"a maximum hold shortens none", []step{
			{0, arrive("a", maxHold(time.Second)), "..."},
			{0, answer(1, refused), "..."},
			{61 * ms, alarm, "acquire o1 ttl=1.21s grant=1.21s timeout=2s; alarm 5s"},
		}, "waiting as o1"},
		{"the next waiter has other terms", begin(refused,
			step{61 * ms, alarm, "..."},
			step{time.Second, arrive("b", holder("other")), ""},
			step{patience, alarm, gaveUp + "; withdraw o1 uncertain; acquire o2 timeout=2s; alarm 6s; " + warning},
		), "waiting as o2"},
		{"a TryLock gives up at the first failure", []step{
			{0, arrive("a", try), "acquire o1 try"},
			{0, answer(1, refused), gaveUp + "; dropped"},
		}, "unused"},
		{"a request whose caller has left says nothing of the store", []step{
			{0, arrive("a"), "acquire o1"},
			{0, arrive("b"), ""},
			{time.Second, givenUp(1), "alarm 2.5s"},
			{time.Second, leave("a"), "a fails: left; acquire o1"},
		}, "waiting as o1"},
		{"a waiter that leaves does not hurry a store in trouble", begin(refused,
			step{10 * ms, arrive("b"), ""},
			step{20 * ms, leave("a"), "a fails: left"},
		), "waiting as o1"},
		{"an error that is final fails all", []step{
			{0, arrive("a"), "acquire o1"},
			{0, arrive("b"), ""},
			{0, answer(1, failed(store.ErrForeignData)), "a fails: foreign data under the key; b fails: foreign data under the key; " +
				"withdraw o1 uncertain; dropped; " + warning},
		}, "unused"},
	})
}

// Pauses double up to a heartbeat. After a request that was refused, they end at 250 ms, or later for a
// client of many keys.
func TestLongestPause(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		reply store.AcquireReply
		keys  int
		want  time.Duration
	}{
		{"no answer", failed(store.ErrOutcomeUnknown), 1, beat},
		{"refused", failed(store.ErrUnreachable), 1, 250 * ms},
		{"refused, 200 keys", failed(store.ErrUnreachable), 200, 500 * ms},
		{"refused, many keys", failed(store.ErrUnreachable), 10_000, beat},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.host.keys = c.keys
			w.step(arrive("a"))
			for n := 1; n <= 8; n++ { // 50 ms doubled seven times is 6.4 s
				w.callers["a"].waiter.Since = w.now // so that its patience does not end
				w.step(answer(n, c.reply))
				if n < 8 {
					w.now = w.alarm
					w.step(alarm)
				}
			}
			if got := w.alarm.Sub(w.now); got < c.want*4/5 || got > c.want*6/5 {
				t.Errorf("the pause is %v, want about %v", got, c.want)
			}
		})
	}
}

// The store's answer to a request decides who goes on waiting.
func TestAnswers(t *testing.T) {
	t.Parallel()
	full, gone, other := store.AcquireReply{Status: store.Full}, store.AcquireReply{Status: store.Withdrawn}, store.AcquireReply{Status: 99}
	heldBy := store.AcquireReply{Status: store.Held}
	notified := store.AcquireReply{Status: store.Held, HolderNotified: true}
	checkRows(t, []row{
		{"the queue is full: the first fails, the next tries", []step{
			{0, arrive("a"), "acquire o1"},
			{0, arrive("b"), ""},
			{0, answer(1, full), "a fails: wait queue is full; acquire o2"},
		}, "waiting as o2"},
		{"the queue is full, and an earlier request had no answer", []step{
			{0, arrive("a"), "acquire o1"},
			{0, answer(1, failed(store.ErrOutcomeUnknown)), "..."},
			{100 * ms, alarm, "..."},
			{100 * ms, answer(2, full), "a fails: wait queue is full; withdraw o1 uncertain; alarm off; dropped"},
		}, "unused"},
		{"withdrawn: a new owner begins", []step{
			{0, arrive("a"), "acquire o1"},
			{0, answer(1, gone), "acquire o2"},
		}, "waiting as o2"},
		{"an answer that is none", []step{
			{0, arrive("a"), "acquire o1"},
			{0, answer(1, other), "a fails: foreign data under the key; withdraw o1; dropped; " + warning},
		}, "unused"},
		{"a TryLock is refused", []step{
			{0, arrive("a", try), "acquire o1 try"},
			{0, answer(1, heldBy), "a fails: held by another; dropped"},
		}, "unused"},
		{"a TryLock is refused, and a Lock behind it begins", []step{
			{0, arrive("a", try), "acquire o1 try"},
			{0, arrive("b"), ""},
			{0, answer(1, heldBy), "a fails: held by another; acquire o2"},
		}, "waiting as o2"},
		{"a future that tries does so twice", []step{
			{0, arrive("a", try, future), "acquire o1 try watch requests"},
			{10 * ms, answer(1, notified), "alarm 30ms"},
			{30 * ms, alarm, "acquire o1 try watch requests; alarm off"},
			{40 * ms, answer(2, notified), "a fails: held by another; dropped"},
		}, "unused"},
		{"a TryLock never waits for a waiter of this client", []step{
			{0, arrive("a"), "acquire o1"},
			{0, arrive("c"), ""},
			{0, arrive("b", try), ""},
			{0, answer(1, granted(10)), "a has 10; b fails: held by another; alarm 5s"},
		}, "holding 10 until 13.345s"},
		{"the local queue is full", []step{
			{0, arrive("a", limit(1)), "acquire o1"},
			{0, arrive("b", limit(1)), "refused: wait queue is full"},
		}, "waiting as o1"},
		{"the last waiter leaves", []step{
			{0, arrive("a"), "acquire o1"},
			{0, answer(1, waiting(0)), "..."},
			{time.Second, leave("a"), "a fails: left; withdraw o1; alarm off; dropped"},
		}, "unused"},
		{"the place in the queue stays if the next waiter has the same terms", []step{
			{0, arrive("a"), "acquire o1"},
			{0, answer(1, waiting(0)), "..."},
			{0, arrive("b"), ""},
			{time.Second, leave("a"), "a fails: left"},
		}, "waiting as o1"},
	})
}
