// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// Cohort handoff: the key passes to another waiter of the client without the store, as long as the waiter has
// asked on the same terms, and enough trust and a token are left.
func TestHandoff(t *testing.T) {
	t.Parallel()
	reserved := granted(10)
	reserved.Reserved = 1
	late := trusted - grantTTL/5 // so much is trusted at least
	requeued := "release o1 token=10 clean requeue o2 unlimited; lease of a ends: unlocked; alarm off"
	begin := func(reply store.AcquireReply, more ...step) []step {
		return append([]step{
			{0, arrive("a"), "acquire o1"},
			{0, answer(1, reply), "..."},
			{0, arrive("b"), ""},
		}, more...)
	}
	passed := func(at string) string {
		return "b has 11; lease of a ends: unlocked; renew o1 token=11 watch; alarm " + at
	}
	checkRows(t, []row{
		{"after some microseconds", begin(followed(10),
			step{2 * time.Microsecond, unlock("a"), passed("13.345s")},
		), "holding 11 until 13.345s"},
		{"a token for each microsecond, less a hundredth", begin(followed(10),
			step{time.Microsecond, unlock("a"), requeued},
		), "waiting as o2"},
		{"tokens that do not follow the clock", begin(granted(10),
			step{time.Second, unlock("a"), requeued},
		), "waiting as o2"},
		{"a token that was set aside", begin(reserved,
			step{0, unlock("a"), passed("13.345s")},
		), "holding 11 until 13.345s"},
		{"no more than were set aside", begin(reserved,
			step{0, unlock("a"), "..."},
			step{0, arrive("c"), ""},
			step{time.Second, unlock("b"), "release o1 token=11 requeue o2 unlimited; lease of b ends: unlocked; alarm off"},
		), "waiting as o2"},
		{"a store without tokens", begin(granted(0),
			step{0, unlock("a"), "b has 0; lease of a ends: unlocked; renew o1 token=0 watch; alarm 13.345s"},
		), "holding 0 until 13.345s"},
		{"enough trust", begin(followed(10),
			step{late, unlock("a"), passed("13.345s")},
		), "holding 11 until 13.345s"},
		{"too little trust", begin(followed(10),
			step{late + 1, unlock("a"), requeued},
		), "waiting as o2"},
		{"on other terms", held(
			step{time.Second, arrive("b", holder("other")), ""},
			step{time.Second, unlock("a"), requeued},
		), "waiting as o2"},
		{"without renewal", heldWith([]with{noRenewal},
			step{time.Second, arrive("b", noRenewal), ""},
			step{time.Second, unlock("a"), requeued},
		), "waiting as o2"},
		{"after a renewal by hand for longer than the TTL", begin(followed(10),
			step{time.Second, renew("a", time.Minute), "..."},
			step{time.Second, renewed(1, store.RenewReply{}), "..."},
			step{2 * time.Second, unlock("a"), requeued},
		), "waiting as o2"},
		{"in the order of arrival", begin(followed(10),
			step{time.Second, arrive("c"), ""},
			step{time.Second, unlock("a"), passed("13.345s")},
			step{time.Second + ms, unlock("b"), "c has 12; lease of b ends: unlocked"},
		), "holding 12 until 13.345s"},
		{"no renewal while they fail", begin(followed(10),
			step{5 * time.Second, alarm, "..."},
			step{5 * time.Second, renewed(1, errRefused), "..."},
			step{5 * time.Second, unlock("a"), "b has 11; lease of a ends: unlocked"},
		), "holding 11 until 13.345s"},
		{"the release writes the last token back", begin(followed(10),
			step{time.Second, unlock("a"), "..."},
			step{time.Second, renewed(1, store.RenewReply{}), "..."},
			step{2 * time.Second, unlock("b"), "release o1 token=11 clean; lease of b ends: unlocked; alarm off; dropped"},
		), "unused"},
	})
}

// While another client waits, or may wait unknown to us, a key passes 128 times or for 10 ms.
func TestHandoffBounds(t *testing.T) {
	t.Parallel()
	watched := func(w *world) { // the store has agreed to notify
		w.step(renewed(1, store.RenewReply{}))
	}
	for _, c := range []struct {
		name  string
		every time.Duration  // between two handoffs
		then  func(w *world) // after the first one
		later func(w *world) // after the sixth; nil: nothing
		want  int
	}{
		{"128 handoffs", 10 * time.Microsecond, func(*world) {}, nil, 128},
		{"10 ms", ms, func(*world) {}, nil, 10},
		{"no bound while nobody waits elsewhere", ms, watched, nil, 300},
		{"from the first who waits elsewhere", ms, watched, func(w *world) {
			w.step(notify(store.Event{Kind: store.EventQueued, Waiters: 1}))
		}, 15},
		{"the renewal's answer says that somebody waits", ms, func(w *world) {
			w.step(renewed(1, store.RenewReply{Waiters: 1}))
		}, nil, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.step(arrive("0"))
			w.step(answer(1, followed(10)))
			passed := 0
			for w.now = start.Add(ms); passed < 300; passed++ {
				w.step(arrive(fmt.Sprint(passed + 1)))
				w.step(unlock(fmt.Sprint(passed)))
				if _, _, held := w.key.Held(); !held {
					break
				}
				if passed == 0 {
					c.then(w)
				}
				if passed == 5 && c.later != nil {
					c.later(w)
				}
				w.now = w.now.Add(c.every)
			}
			if passed != c.want {
				t.Errorf("the key passed %d times, want %d", passed, c.want)
			}
		})
	}
}

// A client that passes the key on asks for waiters elsewhere every 100 ms, in case a notification was lost.
func TestHandoffRenews(t *testing.T) {
	t.Parallel()
	checkRows(t, []row{{"soon after a gap", held(
		step{ms, arrive("b"), ""},
		step{ms, unlock("a"), "..."},
		step{ms, renewed(1, store.RenewReply{}), "..."},
		step{50 * ms, missed(true), ""},
		step{51 * ms, arrive("c"), ""},
		step{51 * ms, unlock("b"), "c has 12; lease of b ends: unlocked; renew o1 token=12 watch; alarm 13.346s"},
	), "holding 12 until 13.346s"}, {"not if a renewal was under way at a gap", held(
		step{ms, arrive("b"), ""},
		step{ms, unlock("a"), "..."},
		step{50 * ms, missed(true), ""},
		step{51 * ms, renewed(1, store.RenewReply{}), "..."},
		step{51 * ms, arrive("c"), ""},
		step{51 * ms, unlock("b"), "release o1 token=11 clean requeue o2 unlimited; lease of b ends: unlocked; alarm off"},
	), "waiting as o2"}, {"after a while", held(
		step{ms, arrive("b"), ""},
		step{ms, unlock("a"), "..."},
		step{ms, renewed(1, store.RenewReply{}), "..."},
		step{101 * ms, arrive("c"), ""},
		step{101 * ms, unlock("b"), "c has 12; lease of b ends: unlocked"},
		step{102 * ms, arrive("d"), ""},
		step{102 * ms, unlock("c"), "d has 13; lease of c ends: unlocked; renew o1 token=13 watch; alarm 13.346s"},
	), "holding 13 until 13.346s"}, {"an answer that comes late hides nobody", held(
		step{ms, arrive("b"), ""},
		step{ms, unlock("a"), "b has 11; lease of a ends: unlocked; renew o1 token=11 watch; alarm 13.345s"},
		step{time.Second, late(1), "..."},
		step{1060 * ms, alarm, "renew o1 token=11 watch; alarm 13.345s"},
		step{1060 * ms, renewed(2, store.RenewReply{Waiters: 1}), "..."},
		step{1060 * ms, renewed(1, store.RenewReply{}), ""},
		step{1080 * ms, arrive("c"), ""},
		step{1080 * ms, unlock("b"), "release o1 token=11 clean requeue o2 unlimited; lease of b ends: unlocked; alarm off"},
	), "waiting as o2"}, {"others are announced twice", held(
		step{ms, event(store.EventQueued), ""},
		step{ms, arrive("b"), ""},
		step{6 * ms, event(store.EventQueued), ""},
		step{12 * ms, unlock("a"), "release o1 token=10 clean requeue o2 unlimited; lease of a ends: unlocked; alarm off"},
	), "waiting as o2"}})
}

// Retention: the client keeps the key after the last unlock, if nobody wants it elsewhere as far as it knows.
func TestRetention(t *testing.T) {
	t.Parallel()
	minute := []with{retention(time.Minute)}
	begin := func(more ...step) []step { return heldWith(minute, more...) }
	kept := func(more ...step) []step {
		return begin(append([]step{{time.Second, unlock("a"), "lease of a ends: unlocked"}}, more...)...)
	}
	silent := followed(10)
	silent.WillNotify = false
	contended := followed(10)
	contended.Waiters = 1
	const (
		given  = "release o1 token=10 clean; alarm off; dropped"
		back   = "release o1 token=10 clean; " + unlocked
		asked  = "release o1 token=10 clean requeue o2 requests; alarm off"
		unsure = "release o1 token=10 uncertain; " + unlocked
	)
	checkRows(t, []row{
		{"kept", kept(), "retained"},
		{"taken again", kept(step{2 * time.Second, arrive("b", minute...), "b has 11"}), "holding 11 until 13.345s"},
		{"taken again by a TryLock", kept(step{2 * time.Second, arrive("b", append(minute, try)...), "b has 11"}), "holding 11 until 13.345s"},
		{"taken again after its bound, before the alarm", heldWith([]with{retention(2 * time.Second)},
			step{time.Second, unlock("a"), "..."},
			step{3 * time.Second, arrive("b", retention(2*time.Second)), asked},
		), "waiting as o2"},
		{"taken again with little trust left", kept(
			step{trusted - grantTTL/5 + 1, arrive("b", minute...), asked},
		), "waiting as o2"},
		{"taken again while renewals fail", kept(
			step{5 * time.Second, alarm, "..."},
			step{5 * time.Second, renewed(1, errRefused), "..."},
			step{5 * time.Second, arrive("b", minute...), asked},
		), "waiting as o2"},
		{"taken again without a token for it", []step{
			{0, arrive("a", minute...), "..."},
			{0, answer(1, granted(10)), "..."},
			{time.Second, unlock("a"), "lease of a ends: unlocked"},
			{time.Second, arrive("b", minute...), asked},
		}, "waiting as o2"},
		{"on other terms", kept(
			step{2 * time.Second, arrive("b"), "release o1 token=10 clean requeue o2; alarm off"},
		), "waiting as o2"},
		{"renewed", kept(
			step{5 * time.Second, alarm, "renew o1 token=10; alarm 13.345s"},
			step{5 * time.Second, renewed(1, store.RenewReply{}), "alarm 10s"},
		), "retained"},
		{"the bound", heldWith([]with{retention(2 * time.Second)},
			step{time.Second, unlock("a"), "lease of a ends: unlocked; alarm 3s"},
			step{3*time.Second - 1, alarm, "alarm 3s"},
			step{3 * time.Second, alarm, given},
		), "unused"},
		{"the end of trust", kept(
			step{5 * time.Second, alarm, "..."},
			step{trusted, alarm, "release o1 token=10; alarm off; dropped"},
		), "unused"},
		{"wanted elsewhere", kept(step{2 * time.Second, event(store.EventRequested), given}), "unused"},
		{"another queues", kept(step{2 * time.Second, event(store.EventQueued), given}), "unused"},
		{"the notification was lost, and a renewal says that another waits", kept(
			step{5 * time.Second, alarm, "..."},
			step{5 * time.Second, renewed(1, store.RenewReply{Waiters: 1}), given},
		), "unused"},
		{"notifications may have been lost", kept(step{2 * time.Second, missed(false), given}), "unused"},
		{"lost", kept(
			step{5 * time.Second, alarm, "..."},
			step{5 * time.Second, renewed(1, store.RenewReply{Err: store.ErrExpired}), "alarm off; dropped"},
		), "unused"},
		{"stolen", kept(
			step{5 * time.Second, alarm, "..."},
			step{5 * time.Second, renewed(1, store.RenewReply{Err: store.ErrStolen}), "alarm off; dropped; WARN another has a key that was retained"},
		), "unused"},
		{"closed", kept(step{2 * time.Second, turnAway, given}), "unused"},
		{"not asked for", held(step{time.Second, unlock("a"), back}), "unused"},
		{"wanted while it was held", begin(
			step{time.Second, event(store.EventRequested), ""},
			step{time.Second, unlock("a"), back},
		), "unused"},
		{"notifications lost while it was held", begin(
			step{time.Second, missed(true), ""},
			step{time.Second, unlock("a"), back},
		), "unused"},
		{"notifications lost while it was asked for", []step{
			{0, arrive("a", minute...), "..."},
			{0, missed(false), ""},
			{0, answer(1, followed(10)), "..."},
			{time.Second, unlock("a"), back},
		}, "unused"},
		{"wanted before the grant was known", []step{
			{0, arrive("a", minute...), "acquire o1 requests"},
			{0, event(store.EventRequested), ""},
			{0, answer(1, followed(10)), "..."},
			{time.Second, unlock("a"), back},
		}, "unused"},
		{"a store that does not notify", []step{
			{0, arrive("a", minute...), "..."},
			{0, answer(1, silent), "..."},
			{time.Second, unlock("a"), back},
		}, "unused"},
		{"another waits by the answer", []step{
			{0, arrive("a", minute...), "..."},
			{0, answer(1, contended), "..."},
			{time.Second, unlock("a"), back},
		}, "unused"},
		{"a request without an answer", []step{
			{0, arrive("a", minute...), "..."},
			{0, answer(1, failed(store.ErrOutcomeUnknown)), "..."},
			{100 * ms, alarm, "..."},
			{100 * ms, answer(2, followed(10)), "..."},
			{time.Second, unlock("a"), unsure},
		}, "unused"},
		{"a request under way", []step{
			{0, arrive("a", minute...), "..."},
			{0, message(10), "..."},
			{time.Second, unlock("a"), unsure},
		}, "unused"},
		{"renewals fail", begin(
			step{5 * time.Second, alarm, "..."},
			step{5 * time.Second, renewed(1, errRefused), "..."},
			step{5 * time.Second, unlock("a"), back},
		), "unused"},
		{"renewed by hand for longer", begin(
			step{time.Second, renew("a", time.Minute), "..."},
			step{time.Second, renewed(1, store.RenewReply{}), "..."},
			step{time.Second, unlock("a"), back},
		), "unused"},
		{"renewed by hand for longer, without an answer yet", begin(
			step{time.Second, renew("a", time.Minute), "..."},
			step{time.Second, unlock("a"), "release o1 token=10; " + unlocked},
		), "unused"},
		{"renewed by hand for the TTL", begin(
			step{time.Second, renew("a", ttl), "..."},
			step{time.Second, renewed(1, store.RenewReply{}), "..."},
			step{time.Second, unlock("a"), "lease of a ends: unlocked"},
		), "retained"},
		{"little trust is left", begin(
			step{trusted - grantTTL/5 + 1, unlock("a"), back},
		), "unused"},
		{"Close has begun", begin(
			step{time.Second, closing, ""},
			step{time.Second, unlock("a"), back},
		), "unused"},
	})
}
