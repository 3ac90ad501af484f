// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// The rules W1 to W10 of docs/design.md, one test for each.

const ms = time.Millisecond

// W1: the owner is registered, and base is taken, before the first request is sent. So a message may come
// before any answer, and is trusted from the arrival.
func TestW1(t *testing.T) {
	t.Parallel()
	checkRows(t, []row{
		{
			"a message before the first answer", []step{
				{0, arrive("a"), "acquire o1"},
				{100 * ms, message(1), "a has 1; alarm 1.5s"},
			}, "holding 1 until 4s",
		},
		{
			"base is of each owner's own", []step{
				{0, arrive("a"), "acquire o1"},
				{0, leave("a"), "a fails: left; withdraw o1 uncertain; dropped"},
				{2 * time.Second, arrive("b"), "acquire o2"},
				{3 * time.Second, message(1), "b has 1; alarm 3.3s"},
			}, "holding 1 until 6s",
		},
	})
}

// W2: each "waiting" reply moves base to the sending of its request, and mark to the store's counter.
// Both only move forward. Its ticket goes with the next request. An attempt has one request under way, so
// the rows about moving back repeat an answer.
func TestW2(t *testing.T) {
	t.Parallel()
	later := waiting(0)
	later.Ticket = 5
	checkRows(t, []row{
		{
			"base is the sending, not the answer", []step{
				{0, arrive("a"), "acquire o1"},
				{time.Second, answer(1, waiting(0)), "alarm ~1.5s"},
				{2 * time.Second, message(1), "a has 1; alarm 1.5s"},
			}, "holding 1 until 4s",
		},
		{
			"base moves with each answer", []step{
				{0, arrive("a"), "acquire o1"},
				{0, answer(1, waiting(0)), "alarm ~1.5s"},
				{2 * time.Second, alarm, "acquire o1; alarm off"},
				{2 * time.Second, answer(2, waiting(0)), "alarm ~1.5s"},
				{3 * time.Second, message(1), "a has 1; alarm 3.3s"},
			}, "holding 1 until 6s",
		},
		{
			"base moves back with no answer", []step{
				{0, arrive("a"), "acquire o1"},
				{0, answer(1, waiting(0)), "alarm ~1.5s"},
				{2 * time.Second, alarm, "acquire o1; alarm off"},
				{2 * time.Second, answer(2, waiting(0)), "alarm ~1.5s"},
				{2 * time.Second, answer(1, waiting(0)), "alarm ~1.5s"},
				{3 * time.Second, message(1), "a has 1; alarm 3.3s"},
			}, "holding 1 until 6s",
		},
		{
			"mark moves back with no answer", []step{
				{0, arrive("a"), "acquire o1"},
				{0, answer(1, waiting(5)), "alarm ~1.5s"},
				{0, answer(1, waiting(2)), "alarm ~1.5s"},
				{0, message(5), "acquire o1; DEBUG dropped a stale grant"},
			}, "waiting as o1",
		},
		{
			"the ticket", []step{
				{0, arrive("a"), "acquire o1"},
				{0, answer(1, later), "alarm ~1.5s"},
				{time.Second, event(store.EventWake), "acquire o1 ticket=5"},
			}, "waiting as o1",
		},
	})
}

// W3: a granting reply is trusted from the sending of its own request. If less than a fifth of the TTL is
// left, the key is given back, and the waiter begins anew.
func TestW3(t *testing.T) {
	t.Parallel()
	const atMost = trusted - ttl/5 // after the sending
	promised := granted(1)
	promised.TTL = 9 * time.Second
	tooSlow := "withdraw o1; alarm ~50ms"
	checkRows(t, []row{
		{"trust counts from the sending", []step{
			{0, arrive("a"), "acquire o1"},
			{2 * time.Second, answer(1, granted(1)), "a has 1; alarm 5s"},
		}, "holding 1 until 13.345s"},
		{"the store may promise less", []step{
			{0, arrive("a"), "acquire o1"},
			{time.Second, answer(1, promised), "a has 1; alarm 3s"},
		}, "holding 1 until 8.005s"},
		{"a fifth is left", []step{
			{0, arrive("a"), "acquire o1"},
			{atMost, answer(1, granted(1)), "a has 1; alarm 5s"},
		}, "holding 1 until 13.345s"},
		{"less is left", []step{
			{0, arrive("a"), "acquire o1"},
			{atMost + 1, answer(1, granted(1)), tooSlow},
			{atMost + 100*ms, alarm, "acquire o2 unlimited timeout=2s; alarm 14.345000001s"},
		}, "waiting as o2"},
		{"an earlier request may still take effect", []step{
			{0, arrive("a"), "acquire o1"},
			{0, answer(1, failed(store.ErrOutcomeUnknown)), "alarm ~50ms"},
			{100 * ms, alarm, "..."},
			{ttl, answer(2, granted(1)), "withdraw o1 uncertain; alarm ~100ms"},
		}, "waiting as o2"},
		{"a TryLock fails", []step{
			{0, arrive("a", try), "acquire o1 try"},
			{ttl, answer(1, granted(1)), "a fails: store unreachable: too slow for this TTL: the answer took 15s, too long for a TTL of 15s; withdraw o1; dropped"},
		}, "unused"},
		{"failures are counted from owner to owner", []step{
			{0, arrive("a"), "acquire o1"},
			{ttl, answer(1, granted(1)), tooSlow},
			{ttl + 100*ms, alarm, "acquire o2 unlimited timeout=2s; alarm 19s"},
			{2*ttl + 100*ms, answer(2, granted(2)), "withdraw o2; alarm ~100ms"},
		}, "waiting as o3"},
		{"a late \"waiting\" does not end the row", []step{
			{0, arrive("a"), "acquire o1"},
			{ttl, answer(1, granted(1)), tooSlow},
			{ttl + 100*ms, alarm, "acquire o2 unlimited timeout=2s; alarm 19s"},
			{2*ttl + 100*ms, answer(2, waiting(1)), "alarm ~1.5s"},
			{2*ttl + 2*time.Second, alarm, "acquire o2 unlimited timeout=2s; alarm off"},
			{2*ttl + 14*time.Second, answer(3, granted(2)), "a fails: store unreachable: too slow for this TTL: the answer took 12s, too long for a TTL of 15s; " +
				"withdraw o2; dropped; WARN waiting for a key failed"},
		}, "unused"},
		{"an answer in time ends the row", []step{
			{0, arrive("a"), "acquire o1"},
			{ttl, answer(1, granted(1)), tooSlow},
			{ttl + 100*ms, alarm, "acquire o2 unlimited timeout=2s; alarm 19s"},
			{ttl + 200*ms, answer(2, waiting(1)), "alarm ~1.5s"},
			{ttl + 2*time.Second, alarm, "acquire o2 unlimited; alarm off"},
		}, "waiting as o2"},
	})
}

// W4: a grant message with a token up to mark makes nobody a holder. The waiter asks the store.
func TestW4(t *testing.T) {
	t.Parallel()
	checkRows(t, []row{
		{"up to mark", []step{
			{0, arrive("a"), "acquire o1"},
			{0, answer(1, waiting(7)), "alarm ~1.5s"},
			{0, message(7), "acquire o1; DEBUG dropped a stale grant"},
		}, "waiting as o1"},
		{"above mark", []step{
			{0, arrive("a"), "acquire o1"},
			{0, answer(1, waiting(7)), "alarm ~1.5s"},
			{0, message(8), "a has 8; alarm 1.5s"},
		}, "holding 8 until 4s"},
		{"each owner has its own mark", []step{
			{0, arrive("a"), "acquire o1"},
			{0, answer(1, waiting(7)), "alarm ~1.5s"},
			{0, leave("a"), "a fails: left; withdraw o1; alarm off; dropped"},
			{0, arrive("b"), "acquire o2"},
			{0, message(7), "b has 7; alarm 1.5s"},
		}, "holding 7 until 4s"},
		{"a request is under way", []step{
			{0, arrive("a"), "acquire o1"},
			{0, answer(1, waiting(7)), "alarm ~1.5s"},
			{2 * time.Second, alarm, "acquire o1; alarm off"},
			{2 * time.Second, message(7), "DEBUG dropped a stale grant"},
			{3 * time.Second, answer(2, waiting(7)), "acquire o1"},
		}, "waiting as o1"},
	})
}

// W5: a grant message is trusted from base, for the grant TTL. If less than a fifth of that is left, the
// waiter asks the store. So does a waiter whose lease is not to be renewed.
func TestW5(t *testing.T) {
	t.Parallel()
	const atMost = trustedBy - grantTTL/5 // after base
	checkRows(t, []row{
		{"a fifth is left", []step{
			{0, arrive("a"), "acquire o1"},
			{0, answer(1, waiting(0)), "alarm ~1.5s"},
			{atMost, message(1), "a has 1; alarm 1.5s"},
		}, "holding 1 until 4s"},
		{"less is left", []step{
			{0, arrive("a"), "acquire o1"},
			{0, answer(1, waiting(0)), "alarm ~1.5s"},
			{atMost + 1, message(1), "acquire o1"},
		}, "waiting as o1"},
		{"a minute late", []step{
			{0, arrive("a"), "acquire o1"},
			{0, answer(1, waiting(0)), "alarm ~1.5s"},
			{time.Minute, message(1), "acquire o1"},
		}, "waiting as o1"},
		{"without renewal", []step{
			{0, arrive("a", noRenewal), "acquire o1"},
			{0, answer(1, waiting(0)), "alarm ~1.5s"},
			{0, message(1), "acquire o1"},
			{time.Second, answer(2, granted(1)), "a has 1; alarm 13.345s"},
		}, "holding 1 until 13.345s"},
	})
}

// W6: the first of reply and message wins. A later one for the same owner adds at most trust.
func TestW6(t *testing.T) {
	t.Parallel()
	begin := func(more ...step) []step {
		return append([]step{
			{0, arrive("a"), "acquire o1"},
			{0, answer(1, waiting(1)), "alarm ~1.5s"},
			{2 * time.Second, alarm, "acquire o1; alarm off"},
			{2 * time.Second, message(5), "a has 5; alarm 1.5s"},
		}, more...)
	}
	checkRows(t, []row{
		{"the answer confirms, and adds trust", begin(
			step{3 * time.Second, answer(2, granted(5)), ""},
		), "holding 5 until 15.345s"},
		{"the answer takes no trust away", begin(
			step{2 * time.Second, renew("a", 10*ttl), "renew o1 token=5 ttl=2m30s"},
			step{2 * time.Second, renewed(1, store.RenewReply{}), "alarm 50s"},
			step{3 * time.Second, answer(2, granted(5)), ""},
		), "holding 5 until 2m15.495s"},
		{"the answer grants anew, so the grant of the message had ended", begin(
			step{3 * time.Second, answer(2, granted(6)), "lease of a ends: lease lost: expired; withdraw o1 token=5; alarm off; dropped; WARN lease lost"},
		), "unused"},
		{"the answer is of an older grant", begin(
			step{3 * time.Second, answer(2, granted(4)), "lease of a ends: lease lost: expired; withdraw o1 token=5; alarm off; dropped; WARN lease lost"},
		), "unused"},
		{"the answer grants anew, and an earlier request had none", []step{
			{0, arrive("a"), "acquire o1"},
			{0, answer(1, failed(store.ErrOutcomeUnknown)), "..."},
			{100 * ms, alarm, "..."},
			{100 * ms, message(5), "a has 5; alarm 1.5s"},
			{200 * ms, answer(2, granted(6)), "lease of a ends: lease lost: expired; withdraw o1 token=5 uncertain; alarm off; dropped; WARN lease lost"},
		}, "unused"},
		{"a token that was used since is no other grant", []step{
			{0, arrive("a"), "acquire o1"},
			{0, answer(1, waiting(1)), "alarm ~1.5s"},
			{2 * time.Second, alarm, "acquire o1; alarm off"},
			{2 * time.Second, notify(store.Event{
				Kind: store.EventGrant, Grant: store.Grant{Token: 5, TokensFollowClock: true}, GrantTTL: grantTTL,
			}), "a has 5; alarm 1.5s"},
			{2100 * ms, arrive("b"), ""},
			{2100 * ms, unlock("a"), "b has 6; lease of a ends: unlocked; renew o1 token=6 watch; alarm 4s"},
			{2200 * ms, answer(2, granted(6)), "alarm 15.345s"},
		}, "holding 6 until 15.345s"},
		{"the answer comes after the deadline", begin(
			step{5 * time.Second, answer(2, granted(5)), "lease of a ends: lease lost: expired; alarm off; dropped; WARN lease lost"},
		), "unused"},
		{"\"waiting\" takes nothing away", begin(
			step{3 * time.Second, answer(2, waiting(9)), ""},
		), "holding 5 until 4s"},
		{"a second message", begin(
			step{3 * time.Second, message(6), ""},
		), "holding 5 until 4s"},
		{"no answer: the release says that one request may come", begin(
			step{3 * time.Second, answer(2, failed(store.ErrOutcomeUnknown)), ""},
			step{3 * time.Second, unlock("a"), "release o1 token=5 uncertain; lease of a ends: unlocked; alarm off; dropped"},
		), "unused"},
	})
}

// W7: a grant for an owner that was withdrawn is given back. A late answer for an owner that has held the
// key undoes nothing.
func TestW7(t *testing.T) {
	t.Parallel()
	checkRows(t, []row{
		{"withdrawn", []step{
			{0, arrive("a"), "acquire o1"},
			{0, leave("a"), "a fails: left; withdraw o1 uncertain; dropped"},
			{time.Second, answer(1, granted(1)), "withdraw o1"},
		}, "unused"},
		{"withdrawn, and another waits", []step{
			{0, arrive("a"), "acquire o1"},
			{0, arrive("b", holder("other")), ""},
			{0, leave("a"), "a fails: left; withdraw o1 uncertain; acquire o2"},
			{time.Second, answer(1, granted(1)), "withdraw o1"},
		}, "waiting as o2"},
		{"withdrawn, and not granted", []step{
			{0, arrive("a"), "acquire o1"},
			{0, leave("a"), "a fails: left; withdraw o1 uncertain; dropped"},
			{time.Second, answer(1, waiting(1)), ""},
			{time.Second, answer(1, failed(store.ErrOutcomeUnknown)), ""},
		}, "unused"},
		{"released", []step{
			{0, arrive("a", minHold(time.Minute)), "acquire o1"},
			{0, answer(1, waiting(0)), "alarm ~1.5s"},
			{2 * time.Second, alarm, "acquire o1; alarm off"},
			{2 * time.Second, message(1), "a has 1; alarm 1.5s"},
			{2 * time.Second, unlock("a"), "release o1 token=1 back=1m0s uncertain; lease of a ends: unlocked; alarm off; dropped"},
			{3 * time.Second, answer(2, granted(1)), ""},
		}, "unused"},
		{"lost", []step{
			{0, arrive("a"), "acquire o1"},
			{0, answer(1, waiting(0)), "alarm ~1.5s"},
			{2 * time.Second, alarm, "acquire o1; alarm off"},
			{2 * time.Second, message(1), "a has 1; alarm 1.5s"},
			{5 * time.Second, alarm, "lease of a ends: lease lost: expired; alarm off; dropped; WARN lease lost"},
			{6 * time.Second, answer(2, granted(1)), ""},
		}, "unused"},
	})
}

// W8: a lease that began with a grant message has the short grant TTL. It is renewed when a third of that
// has passed, and not before.
func TestW8(t *testing.T) {
	t.Parallel()
	checkRows(t, []row{
		{"renewed", []step{
			{0, arrive("a"), "acquire o1"},
			{0, answer(1, waiting(0)), "alarm ~1.5s"},
			{time.Second, message(1), "a has 1; alarm 1.5s"},
			{1499 * ms, alarm, "alarm 1.5s"},
			{1500 * ms, alarm, "renew o1 token=1; alarm 4s"},
			{1600 * ms, renewed(1, store.RenewReply{}), "alarm 6s"},
		}, "holding 1 until 14.845s"},
		{"a short critical section costs no further request", []step{
			{0, arrive("a"), "acquire o1"},
			{0, answer(1, waiting(0)), "alarm ~1.5s"},
			{time.Second, message(1), "a has 1; alarm 1.5s"},
			{1200 * ms, unlock("a"), "release o1 token=1 clean; lease of a ends: unlocked; alarm off; dropped"},
		}, "unused"},
	})
}
