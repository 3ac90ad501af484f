// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"math"
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
		step{2 * time.Second, alarm, "acquire o1; alarm off"},
		step{2 * time.Second, event(store.EventWake), ""}, // one is under way, and another will follow
		step{2 * time.Second, answer(2, waiting(0)), "acquire o1"},
		step{2 * time.Second, answer(3, waiting(0)), "alarm ~1.5s"})
	checkRows(t, []row{
		{"each heartbeat", repeated, "waiting as o1"},
		{"the first, soon after the holder's TTL", answered(0, 200*ms, 0, "alarm <206ms"), "waiting as o1"},
		{"the first, whose holder's TTL is unknown", answered(0, -1, 0, "alarm ~1.5s"), "waiting as o1"},
		{"the first, whose holder lasts", answered(0, time.Minute, 0, "alarm ~1.5s"), "waiting as o1"},
		{"the first, whose holder lasts for centuries", answered(0, math.MaxInt64, 0, "alarm ~1.5s"), "waiting as o1"},
		{"the second", answered(1, 200*ms, 0, "alarm ~1.5s"), "waiting as o1"},
		{"a store without notifications", answered(1, -1, 100*ms, "alarm 100ms"), "waiting as o1"},
		{"no more than three seconds, however long the TTL", []step{
			{0, arrive("a", lasting(time.Hour)), "acquire o1 ttl=1h0m0s grant=9s waiter=9s"},
			{0, answer(1, waiting(0)), "alarm ~3s"},
		}, "waiting as o1"},
		{"no less often for a short maximum hold", []step{
			{0, arrive("a", maxHold(time.Second)), "acquire o1 ttl=1.21s grant=1.21s"},
			{0, answer(1, waiting(0)), "alarm ~1.5s"},
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
			step{1050 * ms, alarm, "acquire o1; alarm off"},
		), "waiting as o1"},
		{"they do not come yet", begin(
			step{time.Second, missed(false), ""},
		), "waiting as o1"},
		{"a request is under way", begin(
			step{2 * time.Second, alarm, "acquire o1; alarm off"},
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
