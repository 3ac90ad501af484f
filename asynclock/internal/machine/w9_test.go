// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// W9: every waiter repeats its request each heartbeat, with jitter. The first in the store's queue also
// repeats it when the holder's TTL will have run out.
func TestW9(t *testing.T) {
	t.Parallel()
	answered := func(rank int, remaining, recheck time.Duration, want string) []step {
		reply := store.AcquireReply{Status: store.Waiting, Rank: rank, Remaining: remaining, Recheck: recheck}
		return []step{{0, arrive("a"), "acquire o1"}, {0, answer(1, reply), want}}
	}
	repeated := append(answered(1, -1, 0, "alarm ~1.5s"),
		step{2 * time.Second, alarm, "acquire o1"},
		step{2 * time.Second, event(store.EventWake), ""}, // one is under way, and another will follow
		step{2 * time.Second, answer(2, waiting(0)), "acquire o1"},
		step{2 * time.Second, answer(3, waiting(0)), "alarm ~1.5s"})
	checkRows(t, []row{
		{"each heartbeat", repeated, "waiting as o1"},
		{"the first, soon after the holder's TTL", answered(0, 200*ms, 0, "alarm <206ms"), "waiting as o1"},
		{"the first, whose holder's TTL is unknown", answered(0, -1, 0, "alarm ~1.5s"), "waiting as o1"},
		{"the first, whose holder lasts", answered(0, time.Minute, 0, "alarm ~1.5s"), "waiting as o1"},
		{"the second", answered(1, 200*ms, 0, "alarm ~1.5s"), "waiting as o1"},
		{"a store without notifications", answered(1, -1, 100*ms, "alarm 100ms"), "waiting as o1"},
		{"no more than three seconds, however long the TTL", []step{
			{0, arrive("a", lasting(time.Hour)), "acquire o1 ttl=1h0m0s grant=9s"},
			{0, answer(1, waiting(0)), "alarm ~3s"},
		}, "waiting as o1"},
		{"a wake-up", append(answered(1, -1, 0, "alarm ~1.5s"),
			step{100 * ms, event(store.EventWake), "acquire o1"}), "waiting as o1"},
		{"a wake-up during a request", append(answered(1, -1, 0, "alarm ~1.5s"),
			step{100 * ms, event(store.EventWake), "acquire o1"},
			step{100 * ms, event(store.EventWake), ""},
			step{200 * ms, answer(2, waiting(0)), "acquire o1"}), "waiting as o1"},
	})
}

// The jitter of heartbeats is spread over a fifth in either direction, so clients do not stay together.
func TestW9Jitter(t *testing.T) {
	t.Parallel()
	least, most := time.Hour, time.Duration(0)
	for range 1000 {
		w := newWorld(t)
		w.step(arrive("a"))
		w.step(answer(1, waiting(0)))
		least, most = min(least, w.alarm.Sub(start)), max(most, w.alarm.Sub(start))
	}
	if least < beat*4/5 || least > beat*9/10 || most < beat*11/10 || most > beat*6/5 {
		t.Errorf("heartbeats after %v to %v, want %v to %v", least, most, beat*4/5, beat*6/5)
	}
}

// W10: when messages may have been lost, every waiter repeats its request, spread over 50 ms.
func TestW10(t *testing.T) {
	t.Parallel()
	begin := func(more ...step) []step {
		return append([]step{{0, arrive("a"), "acquire o1"}, {0, answer(1, waiting(0)), "alarm ~1.5s"}}, more...)
	}
	checkRows(t, []row{
		{"they come again", begin(
			step{time.Second, missed(true), "alarm <50ms"},
			step{1050 * ms, alarm, "acquire o1"},
		), "waiting as o1"},
		{"they do not come yet", begin(
			step{time.Second, missed(false), ""},
		), "waiting as o1"},
		{"a request is under way", begin(
			step{2 * time.Second, alarm, "acquire o1"},
			step{2 * time.Second, missed(true), ""},
			step{2 * time.Second, answer(2, waiting(0)), "acquire o1"},
		), "waiting as o1"},
		{"a holder repeats nothing", begin(
			step{0, message(1), "a has 1; alarm 1.5s"},
			step{time.Second, missed(true), ""},
		), "holding 1 until 4s"},
	})
}

// After a gap the requests of many waiters are spread over the whole 50 ms.
func TestW10Spread(t *testing.T) {
	t.Parallel()
	least, most := time.Hour, time.Duration(0)
	for range 1000 {
		w := newWorld(t)
		w.step(arrive("a"))
		w.step(answer(1, waiting(0)))
		w.step(missed(true))
		least, most = min(least, w.alarm.Sub(start)), max(most, w.alarm.Sub(start))
	}
	if least > 5*ms || most < 45*ms || most >= 50*ms {
		t.Errorf("requests after %v to %v, want them spread over 50ms", least, most)
	}
}

// W11: a future's grant is nobody's until it is claimed. Until then it is not renewed.
func TestW11(t *testing.T) {
	t.Parallel()
	begin := func(more ...step) []step {
		return append([]step{
			{0, arrive("a", future), "acquire o1"},
			{0, answer(1, granted(1)), "a is granted 1; alarm 13.345s"},
		}, more...)
	}
	unclaimed := "a fails: " + notClaimed + "; lease of a ends: " + notClaimed
	checkRows(t, []row{
		{"not renewed", begin(
			step{6 * time.Second, alarm, "alarm 13.345s"},
		), "holding 1 until 13.345s"},
		{"claimed, and renewed at once", begin(
			step{6 * time.Second, claim("a"), "a claims 1; alarm 5s"},
			step{6 * time.Second, alarm, "renew o1 token=1; alarm 13.345s"},
		), "holding 1 until 13.345s"},
		{"not claimed in time", begin(
			step{trusted, alarm, unclaimed + "; release o1 token=1 clean; alarm off; dropped"},
		), "idle"},
		{"claimed too late, before the alarm", begin(
			step{trusted, claim("a"), "not claimed: " + notClaimed + "; " + unclaimed + "; release o1 token=1 clean; alarm off; dropped"},
		), "idle"},
		{"not claimed in time, and another waits", begin(
			step{0, arrive("b"), ""},
			step{trusted, alarm, unclaimed + "; release o1 token=1 clean requeue o2 admitted; alarm off"},
		), "waiting as o2"},
		{"the caller's context has ended", begin(
			step{time.Second, claimAfter("a", errLeft), "not claimed: left; a fails: left; lease of a ends: left; release o1 token=1 clean; alarm off; dropped"},
		), "idle"},
		{"the caller leaves, and the key passes to the next", []step{
			{0, arrive("a", future), "acquire o1"},
			{0, arrive("b"), ""},
			{0, answer(1, followed(1)), "a is granted 1; alarm 13.345s"},
			{time.Second, leave("a"), "a fails: left; b has 2; lease of a ends: left; renew o1 token=2 watch; alarm 13.345s"},
		}, "holding 2 until 13.345s"},
		{"lost before the claim", begin(
			step{time.Second, event(store.EventForced), "a fails: lease lost: unlocked by force; lease of a ends: lease lost: unlocked by force; alarm off; dropped; WARN lease lost"},
			step{time.Second, claim("a"), "not claimed: lease lost: unlocked by force"},
		), "idle"},
		{"claimed after Close has begun", begin(
			step{time.Second, closing, ""},
			step{time.Second, claim("a"), "not claimed: client closed; a fails: client closed; lease of a ends: client closed; release o1 token=1 clean; alarm off; dropped"},
		), "idle"},
		{"claimed by two", begin(
			step{time.Second, claim("a"), "a claims 1; alarm 5s"},
			step{2 * time.Second, claim("a"), "a claims 1"},
		), "holding 1 until 13.345s"},
	})
}
