// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// held begins a case: a has the key from the start, with token 10.
func held(more ...step) []step { return heldWith(nil, more...) }

func heldWith(changes []with, more ...step) []step {
	return append([]step{{0, arrive("a", changes...), "..."}, {0, answer(1, followed(10)), "..."}}, more...)
}

const (
	expired  = "lease of a ends: lease lost: expired; alarm off; dropped; WARN lease lost"
	unlocked = "lease of a ends: unlocked; alarm off; dropped"
)

var (
	errSilent  = store.RenewReply{Err: store.ErrOutcomeUnknown}
	errRefused = store.RenewReply{Err: store.ErrUnreachable}
)

// A renewal is due after a third of the TTL. One that fails is repeated, soon at first. A late one counts.
func TestRenewal(t *testing.T) {
	t.Parallel()
	const due = 5 * time.Second
	checkRows(t, []row{
		{"not before it is due", held(
			step{due - 1, alarm, "alarm 5s"},
		), "holding 10 until 13.345s"},
		{"trust counts from the sending", held(
			step{due, alarm, "renew o1 token=10; alarm 13.345s"},
			step{due + time.Second, renewed(1, store.RenewReply{}), "alarm 10s"},
		), "holding 10 until 18.345s"},
		{"the store may promise less", held(
			step{due, alarm, "renew o1 token=10; alarm 13.345s"},
			step{due, renewed(1, store.RenewReply{TTL: 12 * time.Second}), "alarm 8.8s"},
		), "holding 10 until 15.675s"},
		{"one at a time", held(
			step{due, alarm, "renew o1 token=10; alarm 13.345s"},
			step{due + time.Second, alarm, "alarm 13.345s"},
		), "holding 10 until 13.345s"},
		{"failures are repeated after pauses that double", held(
			step{due, alarm, "renew o1 token=10; alarm 13.345s"},
			step{due, renewed(1, errRefused), "alarm ~50ms; DEBUG renewal failed"},
			step{due + 60*ms, alarm, "renew o1 token=10; alarm 13.345s"},
			step{due + 60*ms, renewed(2, errSilent), "alarm ~100ms; DEBUG renewal failed"},
			step{due + 200*ms, alarm, "renew o1 token=10; alarm 13.345s"},
			step{due + 200*ms, renewed(3, errRefused), "alarm ~200ms; DEBUG renewal failed"},
		), "holding 10 until 13.345s"},
		{"a success ends the row of failures", held(
			step{due, alarm, "renew o1 token=10; alarm 13.345s"},
			step{due, renewed(1, errRefused), "alarm ~50ms; DEBUG renewal failed"},
			step{due + 60*ms, alarm, "renew o1 token=10; alarm 13.345s"},
			step{due + 60*ms, renewed(2, store.RenewReply{}), "alarm 10s"},
			step{10 * time.Second, alarm, "renew o1 token=10; alarm 18.405s"},
			step{10 * time.Second, renewed(3, errRefused), "alarm ~50ms; DEBUG renewal failed"},
		), "holding 10 until 18.405s"},
		{"no success up to the deadline", held(
			step{due, alarm, "renew o1 token=10; alarm 13.345s"},
			step{trusted - 1, renewed(1, errRefused), "DEBUG renewal failed"},
			step{trusted, alarm, "lease of a ends: lease lost: renewals failed until the trust deadline: store unreachable; alarm off; dropped; WARN lease lost"},
		), "unused"},
		{"one that hangs", held(
			step{due, alarm, "renew o1 token=10; alarm 13.345s"},
			step{trusted, alarm, "lease of a ends: lease lost: renewals failed until the trust deadline: store unreachable: outcome unknown; alarm off; dropped; WARN lease lost"},
		), "unused"},
		{"one under way when the process was stopped", held(
			step{due, alarm, "renew o1 token=10; alarm 13.345s"},
			step{trusted + 300*ms, late(1), expired},
		), "unused"},
		{"one that is late makes room for the next", held(
			step{due, alarm, "renew o1 token=10; alarm 13.345s"},
			step{due + time.Second, late(1), "alarm ~50ms; DEBUG renewal failed"},
			step{due + 1060*ms, alarm, "renew o1 token=10; alarm 13.345s"},
			step{due + 2*time.Second, renewed(1, store.RenewReply{}), "alarm 18.345s"},
		), "holding 10 until 18.345s"},
		{"one that is late moves the next one back to no earlier time", held(
			step{due, alarm, "..."},
			step{due + time.Second, late(1), "alarm ~50ms; DEBUG renewal failed"},
			step{due + 1060*ms, alarm, "renew o1 token=10; alarm 13.345s"},
			step{due + 1060*ms, renewed(2, store.RenewReply{}), "alarm 11s"},
			step{due + 2*time.Second, renewed(1, store.RenewReply{}), ""},
		), "holding 10 until 19.405s"},
		{"the time for one doubles with each failure", held(
			step{due, alarm, "..."},
			step{due, patient(1), "may take 1s"},
			step{due, renewed(1, errRefused), "..."},
			step{due + 60*ms, alarm, "..."},
			step{due + 60*ms, patient(2), "may take 2s"},
		), "holding 10 until 13.345s"},
		{"one that is late and fails was counted", held(
			step{due, alarm, "renew o1 token=10; alarm 13.345s"},
			step{due + time.Second, late(1), "alarm ~50ms; DEBUG renewal failed"},
			step{due + time.Second, renewed(1, errSilent), ""},
		), "holding 10 until 13.345s"},
		{"one that was answered is not late", held(
			step{due, alarm, "renew o1 token=10; alarm 13.345s"},
			step{due, renewed(1, store.RenewReply{}), "alarm 10s"},
			step{due + time.Second, late(1), ""},
		), "holding 10 until 18.345s"},
		{"an answer after the deadline revives nothing", held(
			step{due, alarm, "renew o1 token=10; alarm 13.345s"},
			step{trusted, renewed(1, store.RenewReply{}), "lease of a ends: lease lost: renewals failed until the trust deadline: store unreachable: outcome unknown; alarm off; dropped; WARN lease lost"},
		), "unused"},
		{"an answer after the unlock changes nothing", held(
			step{due, alarm, "renew o1 token=10; alarm 13.345s"},
			step{due, unlock("a"), "release o1 token=10; " + unlocked},
			step{due, renewed(1, store.RenewReply{}), ""},
		), "unused"},
		{"another owner has the key", held(
			step{due, alarm, "renew o1 token=10; alarm 13.345s"},
			step{due, renewed(1, store.RenewReply{Err: store.ErrStolen}), "lease of a ends: lease lost: another owner has the key; alarm off; dropped; WARN lease lost"},
		), "unused"},
		{"a lease without renewal", heldWith([]with{noRenewal},
			step{due, alarm, "alarm 13.345s"},
			step{trusted, alarm, expired},
		), "unused"},
		{"by hand", held(
			step{time.Second, renew("a", time.Minute), "renew o1 token=10 ttl=1m0s"},
			step{2 * time.Second, renewed(1, store.RenewReply{}), "alarm 20s"},
		), "holding 10 until 54.395s"},
		{"by hand, for less", held(
			step{time.Second, renew("a", time.Second), "renew o1 token=10 ttl=1s"},
			step{time.Second, renewed(1, store.RenewReply{}), "alarm ~300ms"},
		), "holding 10 until 13.345s"},
		{"by hand, and it fails", held(
			step{time.Second, renew("a", time.Minute), "renew o1 token=10 ttl=1m0s"},
			step{2 * time.Second, renewed(1, errSilent), ""},
		), "holding 10 until 13.345s"},
		{"by hand, after the end", held(
			step{trusted, renew("a", time.Minute), "renew: lease lost: expired; " + expired},
		), "unused"},
	})
}

// Unlock ends a lease once. After a loss it frees the key in the store.
func TestUnlock(t *testing.T) {
	t.Parallel()
	checkRows(t, []row{
		{"once", held(
			step{time.Second, unlock("a"), "release o1 token=10 clean; " + unlocked},
			step{time.Second, unlock("a"), "unlocked before"},
		), "unused"},
		{"after a loss", held(
			step{time.Second, taken, "lease of a ends: lease lost: unlocked by force; alarm off; dropped; WARN lease lost"},
			step{time.Second, unlock("a"), "unlock: lease lost: unlocked by force; withdraw o1 token=10"},
			step{time.Second, unlock("a"), "unlocked before"},
		), "unused"},
		{"after the deadline, before the alarm", held(
			step{trusted, unlock("a"), "unlock: lease lost: expired; lease of a ends: lease lost: expired; withdraw o1 token=10; alarm off; dropped; WARN lease lost"},
		), "unused"},
		{"after a loss with a request on its way", []step{
			{0, arrive("a"), "acquire o1"},
			{0, message(1), "a has 1; alarm 1.5s"},
			{time.Second, taken, "lease of a ends: lease lost: unlocked by force; alarm off; dropped; WARN lease lost"},
			{time.Second, unlock("a"), "unlock: lease lost: unlocked by force; withdraw o1 token=1 uncertain"},
		}, "unused"},
		{"a renewal that had no answer", held(
			step{5 * time.Second, alarm, "..."},
			step{5 * time.Second, renewed(1, errSilent), "..."},
			step{5 * time.Second, unlock("a"), "release o1 token=10; " + unlocked},
		), "unused"},
		{"a renewal that was refused", held(
			step{5 * time.Second, alarm, "..."},
			step{5 * time.Second, renewed(1, errRefused), "..."},
			step{5 * time.Second, unlock("a"), "release o1 token=10 clean; " + unlocked},
		), "unused"},
		{"a renewal that was answered late", held(
			step{5 * time.Second, alarm, "..."},
			step{6 * time.Second, late(1), "..."},
			step{7 * time.Second, renewed(1, store.RenewReply{}), "..."},
			step{7 * time.Second, unlock("a"), "release o1 token=10 clean; " + unlocked},
		), "unused"},
		{"a request that had no answer", []step{
			{0, arrive("a"), "acquire o1"},
			{0, answer(1, failed(store.ErrOutcomeUnknown)), "..."},
			{100 * ms, alarm, "..."},
			{100 * ms, answer(2, granted(1)), "a has 1"},
			{time.Second, unlock("a"), "release o1 token=1 uncertain; " + unlocked},
		}, "unused"},
		{"another waits", held(
			step{time.Second, arrive("b", holder("other")), ""},
			step{time.Second, unlock("a"), "release o1 token=10 clean requeue o2 unlimited; lease of a ends: unlocked; alarm off"},
			step{2 * time.Second, answer(2, granted(20)), "b has 20; alarm 6s"},
		), "holding 20 until 14.345s"},
	})
}

// A loss ends the lease at once. A notification after the deadline is no cause.
func TestLoss(t *testing.T) {
	t.Parallel()
	lost := store.Event{Kind: store.EventLost, Err: store.ErrExpired}
	checkRows(t, []row{
		{"by force", held(
			step{time.Second, taken, "lease of a ends: lease lost: unlocked by force; alarm off; dropped; WARN lease lost"},
		), "unused"},
		{"by force, after the deadline", held(
			step{trusted, event(store.EventForced), expired},
		), "unused"},
		{"seen by the store itself after the deadline", held(
			step{trusted, taken, expired},
		), "unused"},
		{"the store says so", held(
			step{time.Second, notify(lost), expired},
		), "unused"},
		{"the store gives another error", held(
			step{time.Second, notify(store.Event{Kind: store.EventLost, Err: errors.New("session ended")}), expired},
		), "unused"},
		{"another waits", held(
			step{time.Second, arrive("b"), ""},
			step{time.Second, notify(lost), "lease of a ends: lease lost: expired; acquire o2; alarm off; WARN lease lost"},
		), "waiting as o2"},
		{"found by a check", held(
			step{trusted - 1, check("a", 0), "a lasts: true"},
			step{trusted - 1, check("a", time.Second), "a lasts: false"},
			step{trusted, check("a", 0), "a lasts: false; " + expired},
		), "unused"},
	})
}

// The maximum hold ends a lease, and the minimum hold keeps the key back.
func TestHold(t *testing.T) {
	t.Parallel()
	bound := func(more ...step) []step {
		return append([]step{
			{0, arrive("a", maxHold(3*time.Second)), "acquire o1 ttl=3.61s grant=3.61s"},
			{0, answer(1, granted(10)), "a has 10; alarm 3s"},
		}, more...)
	}
	checkRows(t, []row{
		{"the maximum", bound(
			step{3 * time.Second, alarm, "lease of a ends: lease lost: maximum hold reached; alarm off; dropped; WARN lease lost"},
		), "unused"},
		{"the maximum counts from the look", []step{
			{0, arrive("a", future, maxHold(2*time.Second)), "..."},
			{0, answer(1, granted(10)), "a lies, 10; alarm ~800ms"},
			{time.Second, look("a"), "..."},
			{time.Second, alarm, "renew o1 token=10 ttl=2.41s watch; alarm 2.1399s"},
			{time.Second, renewed(1, store.RenewReply{}), "alarm 3s"},
		}, "holding 10 until 3s"},
		{"no renewal beyond the maximum", bound(
			step{2 * time.Second, alarm, "alarm 3s"},
		), "holding 10 until 3s"},
		{"the maximum bounds the TTL of a future that has the key next", []step{
			{0, arrive("a", maxHold(2*time.Second)), "..."},
			{0, answer(1, followed(10)), "..."},
			{ms, arrive("b", future, maxHold(2*time.Second)), ""},
			{ms, unlock("a"), "lease of a ends: unlocked; b lies, 11; renew o1 token=11 ttl=2.41s watch; alarm 2.1399s"},
		}, "holding 11 until 2.1399s"},
		{"the minimum", heldWith([]with{minHold(10 * time.Second)},
			step{4 * time.Second, unlock("a"), "release o1 token=10 back=6s clean; " + unlocked},
		), "unused"},
		{"the minimum is over", heldWith([]with{minHold(10 * time.Second)},
			step{11 * time.Second, unlock("a"), "release o1 token=10 clean; " + unlocked},
		), "unused"},
		{"the minimum keeps the key from waiters of the client", heldWith([]with{minHold(10 * time.Second)},
			step{time.Second, arrive("b", minHold(10*time.Second)), ""},
			step{4 * time.Second, unlock("a"), "release o1 token=10 back=6s clean requeue o2 unlimited; lease of a ends: unlocked; alarm off"},
		), "waiting as o2"},
		{"the minimum counts from the look", []step{
			{0, arrive("a", future, minHold(10*time.Second)), "..."},
			{0, answer(1, granted(10)), "..."},
			{3 * time.Second, look("a"), "..."},
			{4 * time.Second, unlock("a"), "release o1 token=10 back=9s clean; " + unlocked},
		}, "unused"},
		{"a part of several keys is given back early", heldWith([]with{minHold(10 * time.Second)},
			step{time.Second, disown("a"), ""},
			step{time.Second, unlock("a"), "release o1 token=10 clean; " + unlocked},
		), "unused"},
		{"nobody has received", []step{
			{0, arrive("a", future, minHold(10*time.Second)), "..."},
			{0, answer(1, granted(10)), "..."},
			{3 * time.Second, leave("a"), "a fails: left; release o1 token=10 clean; alarm off; dropped"},
		}, "unused"},
		{"the minimum outlasts the maximum", []step{
			{0, arrive("a", maxHold(3*time.Second), minHold(10*time.Second)), "acquire o1 ttl=12.01s"},
			{0, answer(1, granted(10)), "a has 10; alarm 3s"},
			{3 * time.Second, alarm, "lease of a ends: lease lost: maximum hold reached; withdraw o1 token=10 back=7s; alarm off; dropped; WARN lease lost"},
		}, "unused"},
		{"the minimum outlasts the maximum, and a request had no answer", []step{
			{0, arrive("a", maxHold(3*time.Second), minHold(10*time.Second)), "..."},
			{0, answer(1, failed(store.ErrOutcomeUnknown)), "..."},
			{100 * ms, alarm, "..."},
			{100 * ms, answer(2, granted(10)), "..."},
			{3100 * ms, alarm, "lease of a ends: lease lost: maximum hold reached; withdraw o1 token=10 back=7s uncertain; alarm off; dropped; WARN lease lost"},
		}, "unused"},
		{"the minimum outlasts the maximum, and renewals go on", []step{
			{0, arrive("a", maxHold(10*time.Second), minHold(time.Minute)), "acquire o1"},
			{0, answer(1, granted(10)), "..."},
			{5 * time.Second, alarm, "renew o1 token=10; alarm 10s"},
			{5 * time.Second, renewed(1, store.RenewReply{}), ""},
		}, "holding 10 until 10s"},
	})
}
