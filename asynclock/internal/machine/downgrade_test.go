// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// rest is an answer to a downgrade: the owner goes on as a reader with this token.
func rest(token int64) store.ReleaseReply {
	return store.ReleaseReply{WasHeld: true, Grant: store.Grant{Token: token}}
}

// S4: readers in a row join a downgraded lease at once, whatever is known of others.
func TestDowngrade(t *testing.T) {
	t.Parallel()
	checkRows(t, []row{
		{"readers wait, and the store was not asked to notify", []step{
			{0, several, ""},
			{0, arrive("a"), "..."},
			{0, answer(1, granted(10)), "..."},
			{0, arrive("b", reader), ""},
			{0, arrive("c", reader), ""},
			{time.Second, downgrade("a"), "lease of a ends: unlocked; alarm 13.345s"},
			{time.Second, downgraded(1, "d", rest(11)), "d has 11; b has 11; c has 11; alarm 1s"},
		}, "holding 11 until 13.345s"},
		{"others join only what lasts", held(
			step{0, several, ""},
			step{0, arrive("b", reader), ""},
			step{trusted - time.Second, downgrade("a"), "..."},
			step{trusted - 10*ms, downgraded(1, "d", rest(11)), "d has 11; acquire o2 watch; alarm 13.335s"},
		), "holding 11 until 13.345s"},
		{"the maximum hold goes on", heldWith([]with{maxHold(10 * time.Second)},
			step{9 * time.Second, downgrade("a"), "..."},
			step{9 * time.Second, downgraded(1, "d", rest(11)), "..."},
		), "holding 11 until 10s"},
		{"nobody has received what joined", held(
			step{0, join("f", "a", future), "..."},
			step{time.Second, downgrade("a"), "f is idle; lease of a ends: unlocked; alarm 1.25s"},
		), "holding 10 until 13.345s"},
		{"others share the lease by re-entry", held(
			step{0, join("b", "a"), "..."},
			step{time.Second, downgrade("a"), "no downgrade: others share it by re-entry, or it shares another"},
			step{time.Second, downgrade("b"), "no downgrade: others share it by re-entry, or it shares another"},
		), "holding 10 until 13.345s"},
		{"nobody joins the lease meanwhile", held(
			step{time.Second, downgrade("a"), "..."},
			step{time.Second, join("b", "a", reader), "has to arrive"},
		), "holding 10 until 13.345s"},
	})
}

// A downgrade that fails gives the key up. Its error says how the lease was lost, if it was.
func TestDowngradeFails(t *testing.T) {
	t.Parallel()
	nothing := store.ReleaseReply{}
	checkRows(t, []row{
		{"the store has no larger token", held(
			step{time.Second, downgrade("a"), "..."},
			step{time.Second, downgraded(1, "d", rest(10)), "d fails: lease lost: the store had not kept the key for it until the unlock; alarm off; dropped; WARN lease lost"},
		), "unused"},
		{"the store refuses, and a writer of this client waits", held(
			step{0, arrive("b"), ""},
			step{time.Second, downgrade("a"), "..."},
			step{time.Second, downgraded(1, "d", store.ReleaseReply{Err: store.ErrDenied}), "d fails: denied by the store; release o1 token=10 requeue o2 unlimited; alarm off"},
		), "waiting as o2"},
		{"the store tells of the loss meanwhile", held(
			step{time.Second, downgrade("a"), "..."},
			step{time.Second, taken, "alarm off; dropped; WARN lease lost"},
			step{time.Second, downgraded(1, "d", nothing), "d fails: lease lost: unlocked by force; withdraw o1 token=10 uncertain"},
		), "unused"},
		{"a message tells of force meanwhile", held(
			step{time.Second, downgrade("a"), "..."},
			step{time.Second, event(store.EventForced), ""},
			step{time.Second, downgraded(1, "d", nothing), "d fails: lease lost: unlocked by force; alarm off; dropped; WARN lease lost"},
		), "unused"},
	})
}

// An answer about the writer is no proof against the reader. A message that the key was taken is a question.
func TestDowngradeCrossesOthers(t *testing.T) {
	t.Parallel()
	gone := store.RenewReply{Err: store.ErrExpired}
	checkRows(t, []row{
		{"a renewal from before it is answered", held(
			step{5 * time.Second, alarm, "renew o1 token=10; alarm 13.345s"},
			step{5 * time.Second, downgrade("a"), "..."},
			step{5 * time.Second, downgraded(1, "d", rest(11)), "..."},
			step{6 * time.Second, renewed(1, gone), "alarm 5s"},
		), "holding 11 until 13.345s"},
		{"a renewal from before it is answered before the downgrade is", held(
			step{5 * time.Second, alarm, "renew o1 token=10; alarm 13.345s"},
			step{5 * time.Second, downgrade("a"), "..."},
			step{6 * time.Second, renewed(1, gone), ""},
		), "holding 10 until 13.345s"},
		{"an answer from before it, after a grant by message", []step{
			{0, arrive("a"), "acquire o1"},
			{0, message(10), "..."},
			{time.Second, downgrade("a"), "..."},
			{time.Second, downgraded(1, "d", rest(11)), "..."},
			{2 * time.Second, answer(1, granted(10)), ""},
		}, "holding 11 until 4s"},
		{"the reader asks whether the key was taken meanwhile", []step{
			{0, arrive("a", future), "..."},
			{0, answer(1, granted(10)), "..."},
			{time.Second, look("a"), "..."},
			{time.Second, downgrade("a"), "..."},
			{2 * time.Second, event(store.EventForced), ""},
			{3 * time.Second, downgraded(1, "d", rest(11)), "d has 11; alarm 3s"},
			{3 * time.Second, alarm, "renew o1 token=11 watch; alarm 13.345s"},
		}, "holding 11 until 13.345s"},
	})
}
