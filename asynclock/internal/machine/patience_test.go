// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// F4, F5: what lies goes to others who want it after the patience, and the futures pause. The pauses grow while
// it lies in vain.
func TestFuturesPatience(t *testing.T) {
	t.Parallel()
	queued := event(store.EventQueued)
	contended := followed(10)
	contended.Waiters = 1
	silent := followed(10)
	silent.WillNotify, silent.Waiters = false, 1
	unasked := followed(10)
	unasked.WillNotify = false
	const given = "a is idle; release o1 token=10 clean; alarm "
	checkRows(t, []row{
		{"nobody wants it", lies(
			step{time.Minute / 20, alarm, "alarm 5s"},
		), "holding 10 until 13.345s"},
		{"another wants it within the patience", lies(
			step{50 * ms, queued, "alarm 100ms"},
			step{100 * ms, alarm, given + "350ms"},
		), "pausing"},
		{"the patience has one beginning", lies(
			step{50 * ms, arrive("b", future), "a is idle; b lies, 10; alarm 51ms"},
			step{60 * ms, queued, ""},
			step{100 * ms, alarm, "b is idle; release o1 token=10 clean; alarm 350ms"},
		), "pausing"},
		{"one that had its turn brings no patience", lies(
			step{time.Second, queued, given + "1.25s"},
			step{time.Second, arrive("b"), "..."},
			step{time.Second, answer(2, followed(20)), "b has 20"},
			step{1001 * ms, queued, ""},
			step{1002 * ms, unlock("b"), "release o2 token=20 clean; lease of b ends: unlocked"},
		), "pausing"},
		{"after somebody of this client has had the key, there is none", []step{
			{0, arrive("a", future), "..."},
			{0, arrive("b", future), ""},
			{ms, receive("b"), ""},
			{ms, answer(1, followed(10)), "a is idle; b has 10; alarm 251ms"},
			{2 * ms, unlock("b"), "lease of b ends: unlocked; a lies, 11; alarm 5s"},
			{3 * ms, queued, "a is idle; release o1 token=11 clean; alarm 253ms"},
		}, "pausing"},
		{"a pause grows only after a patience", lies(
			step{time.Second, queued, given + "1.25s"},
			step{time.Second, arrive("b"), "..."},
			step{time.Second, answer(2, followed(20)), "b has 20"},
			step{1001 * ms, unlock("b"), "lease of b ends: unlocked; a lies, 21; alarm 6s"},
			step{1100 * ms, queued, "a is idle; release o2 token=21 clean; alarm 1.35s"},
		), "pausing"},
		{"after the pause, one on other terms wants it", []step{
			{0, arrive("a", future, holder("other")), "..."},
			{0, answer(1, followed(10)), "..."},
			{time.Second, queued, given + "1.25s"},
			{time.Second, arrive("b", future), "acquire o2 watch requests"},
			{time.Second, answer(2, followed(20)), "b lies, 20; alarm 1.001s"},
			{1250 * ms, alarm, "b is idle; release o2 token=20 clean requeue o3 watch requests unlimited; alarm 2.25s"},
		}, "waiting as o3"},
		{"another wants it later", lies(
			step{time.Second, queued, given + "1.25s"},
		), "pausing"},
		{"another tries it later", lies(
			step{time.Second, event(store.EventRequested), given + "1.25s"},
		), "pausing"},
		{"notifications may have been lost", lies(
			step{time.Second, missed(false), "alarm 1.25s"},
			step{1250 * ms, alarm, "renew o1 token=10 watch; alarm 10s"},
			step{1250 * ms, renewed(1, store.RenewReply{Waiters: 1}), given + "1.5s"},
		), "pausing"},
		{"another waits by the answer", []step{
			{0, arrive("a", future), "..."},
			{0, answer(1, contended), "a lies, 10; alarm 100ms"},
			{100 * ms, alarm, given + "350ms"},
		}, "pausing"},
		{"another queues before the answer has come", []step{
			{0, arrive("a", future), "..."},
			{0, queued, ""},
			{0, answer(1, followed(10)), "a lies, 10; alarm 100ms"},
			{100 * ms, alarm, given + "350ms"},
		}, "pausing"},
		{"another waits by a renewal", lies(
			step{5 * time.Second, alarm, "..."},
			step{5 * time.Second, renewed(1, store.RenewReply{Waiters: 1}), given + "5.25s"},
		), "pausing"},
		{"the store does not tell who wants it", []step{
			{0, noQueue, ""},
			{0, arrive("a", future), "..."},
			{0, answer(1, silent), "a lies, 10; alarm 100ms"},
			{100 * ms, alarm, given + "1.1s"},
			{1100 * ms, alarm, "acquire o2 watch requests; alarm off"},
			{1100 * ms, answer(2, silent), "a lies, 10; alarm 1.2s"},
		}, "holding 10 until 14.445s"},
		{"the store does not tell, and new ones come rarely", []step{
			{0, noQueue, ""},
			{0, arrive("a", future), "..."},
			{0, answer(1, waiting(0)), "..."},
			{300 * ms, arrive("b", future), "..."},
			{1800 * ms, alarm, "acquire o1 watch requests; alarm off"},
			{1800 * ms, answer(2, silent), "a is idle; b lies, 10; alarm 1.801s"},
			{1800 * ms, leave("a"), "..."},
			{2400*ms - 1, alarm, "alarm 2.4s"},
			{2400 * ms, alarm, "b is idle; release o1 token=10 clean; alarm 3.4s"},
		}, "pausing"},
		{"the store does not tell, and new ones come very rarely", []step{
			{0, noQueue, ""},
			{0, arrive("a", future), "..."},
			{0, answer(1, waiting(0)), "..."},
			{3 * time.Second, arrive("b", future), "..."},
			{3 * time.Second, alarm, "acquire o1 watch requests; alarm off"},
			{3 * time.Second, answer(2, silent), "a is idle; b lies, 10; alarm 3.001s"},
			{3 * time.Second, leave("a"), "..."},
			{4*time.Second - 1, alarm, "alarm 4s"},
			{4 * time.Second, alarm, "b is idle; release o1 token=10 clean; alarm 5s"},
		}, "pausing"},
		{"the store has a queue, and a renewal tells that another waits", []step{
			{0, arrive("a", future), "..."},
			{0, answer(1, unasked), "a lies, 10; alarm 250ms"},
			{250 * ms, alarm, "renew o1 token=10 watch; alarm 10s"},
			{250 * ms, renewed(1, store.RenewReply{}), "alarm 500ms"},
			{500 * ms, alarm, "renew o1 token=10 watch; alarm 10s"},
			{500 * ms, renewed(2, store.RenewReply{Waiters: 1}), given + "750ms"},
		}, "pausing"},
		{"the store has a queue, and nobody tells of a TryLock", []step{
			{0, arrive("a", future), "..."},
			{0, answer(1, unasked), "..."},
			{250 * ms, alarm, "..."},
			{250 * ms, renewed(1, store.RenewReply{}), "..."},
			{10 * time.Second, alarm, given + "11s"},
		}, "pausing"},
		{"the store has a queue, and tells by an answer that another waits", []step{
			{0, arrive("a", future), "..."},
			{0, answer(1, silent), "a lies, 10; alarm 100ms"},
			{100 * ms, alarm, given + "350ms"},
		}, "pausing"},
		{"one of this client waits on other terms", []step{
			{0, arrive("a", future), "..."},
			{0, arrive("b", holder("other")), ""},
			{0, answer(1, followed(10)), "a lies, 10; alarm 1ms"},
			{ms, alarm, "a is idle; release o1 token=10 clean requeue o2 watch requests unlimited; alarm 251ms"},
		}, "waiting as o2"},
		{"a future of this client waits on other terms", []step{
			{0, arrive("a", future), "..."},
			{0, arrive("b", future, holder("other")), ""},
			{0, answer(1, followed(10)), "a lies, 10; alarm 100ms"},
			{100 * ms, alarm, "a is idle; release o1 token=10 clean requeue o2 watch requests unlimited; alarm 350ms"},
		}, "waiting as o2"},
		{"received within the patience", lies(
			step{50 * ms, queued, "..."},
			step{60 * ms, receive("a"), ""},
			step{100 * ms, alarm, "a has 10; alarm 5s"},
			step{200 * ms, look("a"), ""},
			step{300 * ms, unlock("a"), "release o1 token=10 clean; " + unlocked},
		), "unused"},
		{"who comes during the pause is served at once", lies(
			step{time.Second, queued, given + "1.25s"},
			step{time.Second, arrive("b"), "acquire o2 watch requests"},
			step{time.Second, answer(2, followed(20)), "b has 20"},
		), "holding 20 until 14.345s"},
		{"after the pause it queues again", lies(
			step{time.Second, queued, given + "1.25s"},
			step{1250 * ms, alarm, "acquire o2 watch requests; alarm off"},
			step{1250 * ms, answer(2, waiting(0)), "alarm ~1.5s"},
		), "waiting as o2"},
		{"who leaves during the pause", lies(
			step{time.Second, queued, given + "1.25s"},
			step{time.Second, leave("a"), "a fails: left; alarm off; dropped"},
		), "unused"},
		{"Close during the pause", lies(
			step{time.Second, queued, given + "1.25s"},
			step{time.Second, turnAway, "a fails: client closed; alarm off; dropped"},
		), "unused"},
	})
	for _, tt := range []struct {
		received bool
		want     []time.Duration
	}{
		{false, []time.Duration{250 * ms, time.Second, 4 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second}},
		{true, []time.Duration{250 * ms, 250 * ms}},
	} {
		t.Run(fmt.Sprintf("pauses, received between: %t", tt.received), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.step(arrive("f", future))
			for i, want := range tt.want {
				w.step(answer(len(w.acquires), contended))
				w.now = w.now.Add(100 * ms)
				w.step(alarm)
				if got := w.alarm.Sub(w.now); got != want {
					t.Fatalf("pause %d: got %v, want %v", i+1, got, want)
				}
				w.now = w.alarm
				w.step(alarm)
				if !tt.received {
					continue
				}
				other := fmt.Sprint("g", i)
				w.step(arrive(other, future))
				w.step(receive(other))
				w.step(answer(len(w.acquires), contended))
				w.step(unlock(other))
			}
		})
	}
}
