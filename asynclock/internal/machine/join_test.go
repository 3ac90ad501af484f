// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// Close turns all waiters away, and takes back what nobody has claimed. Leases last until they are
// abandoned.
func TestClose(t *testing.T) {
	t.Parallel()
	checkRows(t, []row{
		{"waiters", []step{
			{0, arrive("a"), "acquire o1"},
			{0, arrive("b"), ""},
			{0, turnAway, "a fails: client closed; b fails: client closed; withdraw o1 uncertain; alarm off; dropped"},
		}, "idle"},
		{"an unclaimed grant", []step{
			{0, arrive("a", future), "..."},
			{0, answer(1, granted(10)), "..."},
			{0, turnAway, "a fails: client closed; lease of a ends: client closed; release o1 token=10 clean; alarm off; dropped"},
		}, "idle"},
		{"a lease lasts, and its waiters do not", held(
			step{0, arrive("b"), ""},
			step{0, turnAway, "b fails: client closed"},
		), "holding 10 until 13.345s"},
		{"a lease is abandoned, and nothing is released", held(
			step{0, turnAway, ""},
			step{0, abandon, "lease of a ends: client closed; alarm off; dropped"},
			step{0, unlock("a"), "unlock: client closed"},
		), "idle"},
		{"all leases of a holding are abandoned", held(
			step{0, join("b", "a"), "b claims 10; alarm 5s"},
			step{0, abandon, "lease of a ends: client closed; lease of b ends: client closed; alarm off; dropped"},
		), "idle"},
		{"nothing to abandon", []step{{0, abandon, "no lease"}}, "idle"},
	})
}

// Re-entry: a lease that joins shares the holding, which ends with the last unlock.
func TestJoin(t *testing.T) {
	t.Parallel()
	const forced = "WARN lease lost"
	checkRows(t, []row{
		{"released with the last, in order", held(
			step{0, join("b", "a"), "b claims 10; alarm 5s"},
			step{0, unlock("b"), "lease of b ends: unlocked"},
			step{0, unlock("a"), "release o1 token=10 clean; " + unlocked},
		), "idle"},
		{"released with the last, the first one first", held(
			step{0, join("b", "a"), "b claims 10; alarm 5s"},
			step{0, unlock("a"), "lease of a ends: unlocked"},
			step{0, unlock("b"), "release o1 token=10 clean; lease of b ends: unlocked; alarm off; dropped"},
		), "idle"},
		{"one that joined may be joined", held(
			step{0, join("b", "a"), "..."},
			step{0, join("c", "b"), "c claims 10; alarm 5s"},
			step{0, unlock("a"), "lease of a ends: unlocked"},
			step{0, unlock("b"), "lease of b ends: unlocked"},
		), "holding 10 until 13.345s"},
		{"a loss ends all", held(
			step{0, join("b", "a"), "..."},
			step{0, event(store.EventForced), "lease of a ends: lease lost: unlocked by force; lease of b ends: lease lost: unlocked by force; alarm off; dropped; " + forced},
			step{0, unlock("a"), "unlock: lease lost: unlocked by force"},
			step{0, unlock("b"), "unlock: lease lost: unlocked by force; withdraw o1 token=10"},
		), "idle"},
		{"a future joins at its claim", held(
			step{0, joinLater("f", "a"), ""},
			step{time.Second, claim("f"), "f claims 10; alarm 5s"},
			step{time.Second, unlock("a"), "lease of a ends: unlocked"},
		), "holding 10 until 13.345s"},
		{"an unclaimed future keeps nothing: it waits when the lease is unlocked", held(
			step{0, joinLater("f", "a"), ""},
			step{0, joinLater("g", "a"), ""},
			step{time.Second, unlock("a"), "f is granted 11; lease of a ends: unlocked; renew o1 token=11 watch; alarm 13.345s"},
			step{time.Second, claim("f"), "f claims 11; alarm 13.345s"},
			step{time.Second + ms, unlock("f"), "g is granted 12; lease of f ends: unlocked; alarm 13.345s"},
		), "holding 12 until 13.345s"},
		{"it waits when the lease is lost", held(
			step{0, joinLater("f", "a"), ""},
			step{time.Second, event(store.EventForced), "lease of a ends: lease lost: unlocked by force; acquire o2; alarm off; " + forced},
		), "waiting as o2"},
		{"one that does not wait arrives again", held(
			step{0, joinLater("f", "a", try), ""},
			step{time.Second, unlock("a"), "release o1 token=10 clean; f arrives again; " + unlocked},
		), "idle"},
		{"one whose result was received fails", held(
			step{0, joinLater("f", "a"), ""},
			step{0, receive, ""},
			step{time.Second, unlock("a"), "release o1 token=10 clean; f fails: " + notClaimed + "; " + unlocked},
			step{time.Second, claim("f"), "not claimed: " + notClaimed},
		), "idle"},
		{"the client is closed", held(
			step{0, joinLater("f", "a"), ""},
			step{0, closing, ""},
			step{time.Second, unlock("a"), "release o1 token=10 clean; f fails: client closed; " + unlocked},
		), "idle"},
		{"the future leaves", held(
			step{0, joinLater("f", "a"), ""},
			step{0, leave("f"), "f fails: left"},
			step{time.Second, unlock("a"), "release o1 token=10 clean; " + unlocked},
		), "idle"},
		{"the caller's context has ended", held(
			step{0, joinLater("f", "a"), ""},
			step{0, claimAfter("f", errLeft), "not claimed: left"},
		), "holding 10 until 13.345s"},
		{"the lease has ended", held(
			step{time.Second, unlock("a"), "..."},
			step{time.Second, joinLater("f", "a"), "has to arrive"},
			step{time.Second, join("b", "a"), "not claimed: " + notClaimed},
		), "idle"},
		{"the lease ends at the moment of the claim", held(
			step{0, joinLater("f", "a"), ""},
			step{trusted, receive, ""},
			step{trusted, claim("f"), "not claimed: " + notClaimed + "; f fails: " + notClaimed + "; " + expired},
		), "idle"},
	})
}
