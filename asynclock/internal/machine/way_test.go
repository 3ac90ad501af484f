// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/store"
)

// came says how a caller has come to its lease, and which token kept it from the key.
func came(name string) input {
	return func(w *world, _ *machine.Step) []string {
		w.outside = true
		c := w.callers[name]
		way := [machine.Ways]string{"at once", "in the queue", "inside the client", "retained", "joined", "downgraded"}[c.waiter.Way]
		return []string{way + option(c.blocker != 0, " after %d", c.blocker)}
	}
}

// use says what the client does with the key.
func use(w *world, _ *machine.Step) []string {
	w.outside = true
	var all []string
	for i, name := range [machine.Uses]string{"waits", "keeps", "lends", "wanted"} {
		if w.key.Use()&(1<<i) != 0 {
			all = append(all, name)
		}
	}
	return []string{cmp.Or(strings.Join(all, ", "), "nothing")}
}

// trustLeft says how much of its TTL was left of the lease, when its renewal was answered.
func trustLeft(w *world, _ *machine.Step) []string {
	w.outside = true
	return []string{cmp.Or(w.left, "nothing")}
}

// behind is an answer to a waiter behind the holder with that token.
func behind(token int64) store.AcquireReply {
	reply := waiting(0)
	reply.HolderToken = token
	return reply
}

func TestWays(t *testing.T) {
	t.Parallel()
	checkRows(t, []row{
		{"the store grants at once", held(
			step{0, came("a"), "at once"},
		), "holding 10 until 13.345s"},
		{"the store grants by a message", []step{
			{0, arrive("a"), "..."},
			{0, answer(1, behind(7)), "..."},
			{0, message(10), "..."},
			{0, came("a"), "in the queue after 7"},
		}, "holding 10 until 4s"},
		{"a message before any answer", []step{
			{0, arrive("a"), "..."},
			{0, message(10), "..."},
			{0, came("a"), "in the queue"},
		}, "holding 10 until 4s"},
		{"the store grants by an answer, after one that said to wait", []step{
			{0, arrive("a"), "..."},
			{0, answer(1, behind(7)), "..."},
			{0, event(store.EventWake), "..."},
			{0, answer(2, granted(10)), "..."},
			{0, came("a"), "in the queue after 7"},
		}, "holding 10 until 13.345s"},
		{"the store grants after a grace", []step{
			{0, arrive("a"), "..."},
			{0, answer(1, store.AcquireReply{Status: store.Waiting, Grace: time.Second}), "..."},
			{time.Second, alarm, "..."},
			{time.Second, answer(2, granted(10)), "..."},
			{time.Second, came("a"), "in the queue"},
		}, "holding 10 until 14.345s"},
		{"the key was given back meanwhile, and is granted again", held(
			step{0, arrive("b", holder("other")), ""},
			step{time.Second, unlock("a"), "..."},
			step{time.Second, answer(2, granted(11)), "..."},
			step{time.Second, came("b"), "in the queue"},
		), "holding 11 until 14.345s"},
		{"another of this client gives it on", []step{
			{0, arrive("a"), "..."},
			{0, answer(1, followed(10)), "..."},
			{0, arrive("b"), ""},
			{time.Second, unlock("a"), "..."},
			{time.Second, came("b"), "inside the client after 10"},
		}, "holding 11 until 13.345s"},
		{"it is retained", heldWith([]with{retention(time.Minute)},
			step{time.Second, unlock("a"), "..."},
			step{2 * time.Second, arrive("b", retention(time.Minute)), "..."},
			step{2 * time.Second, came("b"), "retained"},
		), "holding 11 until 13.345s"},
		{"nobody has had what a future was granted", lies(
			step{0, arrive("b"), "..."},
			step{0, came("b"), "at once"},
		), "holding 10 until 13.345s"},
		{"re-entry", held(
			step{0, join("b", "a"), "..."},
			step{0, came("b"), "joined"},
		), "holding 10 until 13.345s"},
		{"a reader, and those that a grant is for, and who joins them", []step{
			{0, arrive("a", reader), "..."},
			{0, arrive("b", reader), "..."},
			{0, answer(1, granted(10)), "..."},
			{0, came("a"), "at once"},
			{0, came("b"), "at once"},
			{time.Second, arrive("c", reader), "..."},
			{time.Second, came("c"), "inside the client"},
		}, "holding 10 until 13.345s"},
		{"readers have retained it", heldWith([]with{reader, retention(time.Minute)},
			step{time.Second, unlock("a"), "..."},
			step{2 * time.Second, arrive("b", reader, retention(time.Minute)), "..."},
			step{2 * time.Second, came("b"), "retained"},
			step{2 * time.Second, arrive("c", reader, retention(time.Minute)), "..."},
			step{2 * time.Second, came("c"), "inside the client"},
		), "holding 10 until 13.345s"},
		{"permits, and who they pass to", []step{
			{0, arrive("a", permits(3)), "..."},
			{0, answer(1, block(10, 3)), "..."},
			{0, came("a"), "at once"},
			{0, arrive("b", permits(3)), ""},
			{time.Second, unlock("a"), "..."},
			{time.Second, came("b"), "inside the client"},
		}, "holding 10 until 13.345s"},
		{"a downgrade, and who joins it", held(
			step{0, several, ""},
			step{0, arrive("b", reader), ""},
			step{time.Second, downgrade("a"), "..."},
			step{time.Second, downgraded(1, "d", rest(11)), "..."},
			step{time.Second, came("d"), "downgraded"},
			step{time.Second, came("b"), "inside the client"},
		), "holding 11 until 13.345s"},
	})
}

func TestUses(t *testing.T) {
	t.Parallel()
	checkRows(t, []row{
		{"none before", []step{{0, use, "nothing"}}, "unused"},
		{"it waits, and has the key", []step{
			{0, arrive("a"), "..."},
			{0, use, "waits"},
			{0, answer(1, granted(10)), "..."},
			{0, use, "nothing"},
			{0, event(store.EventQueued), "..."},
			{0, use, "wanted"},
		}, "holding 10 until 13.345s"},
		{"it retains the key", heldWith([]with{retention(time.Minute)},
			step{time.Second, unlock("a"), "..."},
			step{time.Second, use, "keeps"},
		), "retained"},
		{"it lies, and another client wants it", lies(
			step{0, use, "lends"},
			step{0, event(store.EventRequested), "..."},
			step{0, use, "lends, wanted"},
		), "holding 10 until 13.345s"},
		{"a writer waits beside readers", heldWith([]with{reader},
			step{0, several, ""},
			step{0, arrive("b"), "..."},
			step{0, answer(2, waiting(0)), "..."},
			step{0, use, "waits"},
		), "holding 10 until 13.345s"},
	})
}

// The trust that was left shows how close a loss was.
func TestTrustThatWasLeft(t *testing.T) {
	t.Parallel()
	checkRows(t, []row{
		{"a renewal", held(
			step{5 * time.Second, alarm, "..."},
			step{8 * time.Second, renewed(1, store.RenewReply{TTL: ttl}), "..."},
			step{8 * time.Second, trustLeft, "renewed true, 0.40 left"},
			step{8 * time.Second, check("a", 0), "..."},
			step{8 * time.Second, trustLeft, "nothing"},
		), "holding 10 until 18.345s"},
		{"a renewal that fails", held(
			step{5 * time.Second, alarm, "..."},
			step{8 * time.Second, renewed(1, store.RenewReply{Err: store.ErrUnreachable}), "..."},
			step{8 * time.Second, trustLeft, "renewed false, 0.40 left"},
		), "holding 10 until 13.345s"},
		{"the answer comes after the lease has ended", held(
			step{5 * time.Second, alarm, "..."},
			step{14 * time.Second, renewed(1, store.RenewReply{TTL: ttl}), "..."},
			step{14 * time.Second, trustLeft, "renewed true, 0.00 left"},
		), "unused"},
		{"no answer in time, and one that comes late", held(
			step{5 * time.Second, alarm, "..."},
			step{8 * time.Second, late(1), "..."},
			step{8 * time.Second, trustLeft, "renewed false, 0.40 left"},
			step{9 * time.Second, renewed(1, store.RenewReply{Err: store.ErrUnreachable}), "..."},
			step{9 * time.Second, trustLeft, "nothing"},
		), "holding 10 until 13.345s"},
		{"nobody has the lease any more", held(
			step{5 * time.Second, alarm, "..."},
			step{6 * time.Second, unlock("a"), "..."},
			step{8 * time.Second, renewed(1, store.RenewReply{Err: store.ErrExpired}), "..."},
			step{8 * time.Second, trustLeft, "nothing"},
			step{8 * time.Second, renewed(1, store.RenewReply{TTL: ttl}), "..."},
			step{8 * time.Second, trustLeft, "renewed true, 1.00 left"},
		), "unused"},
	})
}
