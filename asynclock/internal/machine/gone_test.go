// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// Futures that nobody can receive from any more end with the arrival of others.
func TestFuturesThatNobodyRefersTo(t *testing.T) {
	t.Parallel()
	const ends = "a fails: nobody can receive the result"
	checkRows(t, []row{
		{"in the queue", held(
			step{0, arrive("f", future), ""},
			step{0, arrive("g", future), ""},
			step{0, forget("f"), ""},
			step{0, arrive("h", future), "f fails: nobody can receive the result"},
		), "holding 10 until 13.345s"},
		{"behind others", held(
			step{0, arrive("f", future), ""},
			step{0, arrive("g", future), ""},
			step{0, forget("g"), ""},
			step{0, arrive("h", future), "g fails: nobody can receive the result"},
		), "holding 10 until 13.345s"},
		{"behind one that has left", held(
			step{0, arrive("f", future), ""},
			step{0, arrive("g", future), ""},
			step{0, arrive("h", future), ""},
			step{0, arrive("i", future), ""},
			step{0, leave("i"), "i fails: left"},
			step{0, forget("i"), ""},
			step{0, arrive("j", future), ""},
			step{time.Second, unlock("a"), "lease of a ends: unlocked; f is idle; g is idle; h is idle; j lies, 11; renew o1 token=11 watch; alarm 1.001s"},
		), "holding 11 until 13.345s"},
		{"idle", lies(
			step{0, arrive("b"), "..."},
			step{0, forget("a"), ""},
			step{0, arrive("h", future), "a fails: nobody can receive the result; alarm 5s"},
		), "holding 10 until 13.345s"},
		{"the last one of a client that pauses", lies(
			step{time.Second, event(store.EventQueued), "..."},
			step{time.Second, forget("a"), ""},
			step{time.Second, arrive("h", future), "a fails: nobody can receive the result; acquire o2 watch requests; alarm off"},
			step{time.Second, leave("h"), "h fails: left; withdraw o2 uncertain; dropped"},
		), "unused"},
		{"the first, on whose terms the store is asked", []step{
			{0, arrive("a", future, holder("x")), "..."},
			{0, forget("a"), ""},
			{0, arrive("b", future), "a fails: nobody can receive the result; withdraw o1 uncertain; acquire o2 watch requests"},
		}, "waiting as o2"},
		{"not one with whom the key lies", lies(
			step{0, forget("a"), ""},
			step{time.Second, arrive("b", future), "b lies, 10; a fails: nobody can receive the result"},
		), "holding 10 until 13.345s"},
		{"when the key is granted", []step{
			{0, arrive("a", future), "..."},
			{0, forget("a"), ""},
			{0, answer(1, followed(10)), ends + "; release o1 token=10 clean; dropped"},
		}, "unused"},
		{"when another comes to a queue that is full", []step{
			{0, arrive("a", future, limit(1)), "..."},
			{0, forget("a"), ""},
			{0, arrive("b", limit(1)), ends + "; withdraw o1 uncertain; acquire o2"},
		}, "waiting as o2"},
		{"when it would queue again", lies(
			step{0, forget("a"), ""},
			step{time.Second, event(store.EventQueued), ends + "; release o1 token=10 clean; alarm off; dropped"},
		), "unused"},
		{"during the pause", lies(
			step{time.Second, event(store.EventQueued), "..."},
			step{time.Second, forget("a"), ""},
			step{1250 * ms, alarm, ends + "; alarm off; dropped"},
		), "unused"},
		{"it keeps what lies there", lies(
			step{0, forget("a"), ""},
			step{5 * time.Second, alarm, "renew o1 token=10 watch; alarm 13.345s"},
		), "holding 10 until 13.345s"},
	})
}
