// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"
)

// Close turns all waiters away, and takes back what nobody has claimed. Leases last until they are
// abandoned.
func TestClose(t *testing.T) {
	t.Parallel()
	checkRows(t, []row{
		{"waiters", []step{
			{0, arrive("a"), "acquire o1"},
			{0, arrive("b"), ""},
			{0, turnAway, "a fails: client closed; b fails: client closed; withdraw o1 uncertain; dropped"},
		}, "unused"},
		{"a lease that lies", []step{
			{0, arrive("a", future), "..."},
			{0, answer(1, granted(10)), "..."},
			{0, turnAway, "a fails: client closed; release o1 token=10 clean; alarm off; dropped"},
		}, "unused"},
		{"one that never waits", []step{
			{0, arrive("a", future, try), "..."},
			{0, answer(1, granted(10)), "..."},
			{0, closing, ""},
			{0, turnAway, "a fails: client closed; release o1 token=10 clean; alarm off; dropped"},
		}, "unused"},
		{"a lease that was received", []step{
			{0, arrive("a", future), "..."},
			{0, answer(1, granted(10)), "..."},
			{0, receive("a"), ""},
			{0, turnAway, "a has 10"},
		}, "holding 10 until 13.345s"},
		{"a lease lasts, and its waiters do not", held(
			step{0, arrive("b"), ""},
			step{0, turnAway, "b fails: client closed"},
		), "holding 10 until 13.345s"},
		{"a lease is abandoned, and nothing is released", held(
			step{0, turnAway, ""},
			step{0, abandon, "lease of a ends: client closed; alarm off; dropped"},
			step{0, unlock("a"), "unlock: client closed"},
		), "unused"},
		{"all leases of a holding are abandoned", held(
			step{0, join("b", "a"), "b has 10"},
			step{0, abandon, "lease of a ends: client closed; lease of b ends: client closed; alarm off; dropped"},
		), "unused"},
		{"nothing to abandon", []step{{0, abandon, "0 leases"}}, "unused"},
		{"leases of several owners count together", []step{
			{0, several, ""},
			{0, arrive("a", reader), "..."},
			{0, answer(1, followed(10)), "..."},
			{0, arrive("b", reader, holder("other")), "..."},
			{0, answer(2, followed(11)), "..."},
			{0, abandon, "2 leases; lease of a ends: client closed; lease of b ends: client closed; alarm off; dropped"},
		}, "unused"},
	})
}

// Re-entry: a lease that joins shares the holding, which ends with the last unlock.
func TestJoin(t *testing.T) {
	t.Parallel()
	const forced = "WARN lease lost"
	checkRows(t, []row{
		{"released with the last, in order", held(
			step{0, join("b", "a"), "b has 10"},
			step{0, unlock("b"), "lease of b ends: unlocked"},
			step{0, unlock("a"), "release o1 token=10 clean; " + unlocked},
		), "unused"},
		{"released with the last, the first one first", held(
			step{0, join("b", "a"), "b has 10"},
			step{0, unlock("a"), "lease of a ends: unlocked"},
			step{0, unlock("b"), "release o1 token=10 clean; lease of b ends: unlocked; alarm off; dropped"},
		), "unused"},
		{"one that joined may be joined", held(
			step{0, join("b", "a"), "..."},
			step{0, join("c", "b"), "c has 10"},
			step{0, unlock("a"), "lease of a ends: unlocked"},
			step{0, unlock("b"), "lease of b ends: unlocked"},
		), "holding 10 until 13.345s"},
		{"a loss ends all", held(
			step{0, join("b", "a"), "..."},
			step{0, taken, "lease of a ends: lease lost: unlocked by force; lease of b ends: lease lost: unlocked by force; alarm off; dropped; " + forced},
			step{0, unlock("a"), "unlock: lease lost: unlocked by force"},
			step{0, unlock("b"), "unlock: lease lost: unlocked by force; withdraw o1 token=10"},
		), "unused"},
		{"a future joins at once, and may be received later", held(
			step{0, join("f", "a", future), "f lies, 10"},
			step{time.Second, look("f"), "f has 10"},
			step{time.Second, unlock("a"), "lease of a ends: unlocked"},
		), "holding 10 until 13.345s"},
		{"what nobody has received keeps nothing: it waits when the lease is unlocked", held(
			step{0, join("f", "a", future), "..."},
			step{0, join("g", "a", future), "g lies, 10"},
			step{time.Second, unlock("a"), "lease of a ends: unlocked; f is idle; g lies, 11; renew o1 token=11 watch; alarm 1.001s"},
			step{time.Second, look("g"), "g has 11; alarm 1.25s"},
			step{time.Second + ms, unlock("g"), "lease of g ends: unlocked; f lies, 12; alarm 13.345s"},
		), "holding 12 until 13.345s"},
		{"it waits when the lease is lost", held(
			step{0, join("f", "a", future), "..."},
			step{time.Second, taken, "lease of a ends: lease lost: unlocked by force; acquire o2 watch requests; alarm off; " + forced},
		), "waiting as o2"},
		{"one that does not wait fails", held(
			step{0, join("f", "a", future, try), "..."},
			step{time.Second, unlock("a"), "release o1 token=10 clean; f fails: held by another; " + unlocked},
		), "unused"},
		{"one whose result was received has the lease", held(
			step{0, join("f", "a", future), "..."},
			step{0, receive("f"), ""},
			step{time.Second, unlock("a"), "f has 10; lease of a ends: unlocked"},
			step{time.Second, unlock("f"), "release o1 token=10 clean; lease of f ends: unlocked; alarm off; dropped"},
		), "unused"},
		{"it is not renewed if the lease is not", heldWith([]with{noRenewal},
			step{0, join("f", "a", future), "..."},
			step{9 * time.Second, look("f"), "f has 10"},
		), "holding 10 until 13.345s"},
		{"its caller leaves", held(
			step{0, join("f", "a", future), "..."},
			step{0, leave("f"), "f fails: left"},
			step{time.Second, unlock("a"), "release o1 token=10 clean; " + unlocked},
		), "unused"},
		{"the lease has ended", held(
			step{time.Second, unlock("a"), "..."},
			step{time.Second, join("f", "a", future), "has to arrive"},
			step{time.Second, join("b", "a"), "has to arrive"},
		), "unused"},
		{"the lease ends at the moment of the look", held(
			step{0, join("f", "a", future), "..."},
			step{trusted, receive("f"), ""},
			step{trusted, look("f"), "no lease: lease lost: expired; f fails: lease lost: expired; lease of a ends: lease lost: expired; lease of f ends: lease lost: expired; alarm off; dropped; WARN lease lost"},
		), "unused"},
	})
}
