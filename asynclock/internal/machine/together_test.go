// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// S7, P10: leases with a maximum or minimum hold are granted together, and end together.
func TestLeasesThatEndTogether(t *testing.T) {
	t.Parallel()
	of := func(token int64, n int32) store.AcquireReply {
		reply := granted(token)
		reply.Weight, reply.Limit = n, 3
		return reply
	}
	asking := func(hold with, asked string, more ...step) []step { // a has a permit, and b and c ask for one each
		return append([]step{
			{0, several, ""},
			{0, arrive("a", permits(1), hold), "..."},
			{0, arrive("b", permits(1), hold), ""},
			{0, arrive("c", permits(1), hold), ""},
			{0, answer(1, of(10, 1)), asked},
		}, more...)
	}
	three := func(hold with, more ...step) []step { return asking(hold, "...", more...) }
	second := minHold(time.Second)
	checkRows(t, []row{
		{"with a minimum hold", asking(second, "a has 10; acquire o2 watch extra=1; alarm 5s",
			step{0, answer(2, of(20, 2)), "b has 20; c has 20"},
			step{500 * ms, unlock("b"), "lease of b ends: unlocked; alarm 1s"},
			step{time.Second, alarm, "release o2 token=20 rest=1; alarm 5s"},
			step{2 * time.Second, unlock("c"), "release o2 token=20; lease of c ends: unlocked"},
		), "holding 10 until 13.345s"},
		{"all are unlocked before it is over", three(second,
			step{0, answer(2, of(20, 2)), "..."},
			step{500 * ms, unlock("b"), "..."},
			step{600 * ms, unlock("c"), "release o2 token=20 back=400ms; lease of c ends: unlocked; alarm 5s"},
		), "holding 10 until 13.345s"},
		{"another comes meanwhile", three(second,
			step{0, answer(2, of(20, 2)), "..."},
			step{500 * ms, unlock("b"), "..."},
			step{600 * ms, arrive("d", permits(1), second), ""},
			step{time.Second, alarm, "release o2 token=20 rest=1; acquire o3 watch; alarm 5s"},
		), "holding 10 until 13.345s"},
		{"a minimum hold of more than a heartbeat", asking(minHold(beat+1), "a has 10; acquire o2 watch; alarm 5s",
			step{0, answer(2, of(20, 1)), "b has 20; acquire o3 watch"},
		), "holding 10 until 13.345s"},
		{"with a maximum hold", three(maxHold(time.Second),
			step{0, answer(2, of(20, 2)), "b has 20; c has 20"},
			step{500 * ms, unlock("b"), "release o2 token=20 rest=1; lease of b ends: unlocked"},
			step{time.Second, alarm, "lease of a ends: lease lost: maximum hold reached; lease of c ends: lease lost: maximum hold reached; alarm off; dropped; WARN lease lost; WARN lease lost"},
		), "unused"},
		{"a future is granted by itself", []step{
			{0, several, ""},
			{0, arrive("a", reader, maxHold(time.Second)), "..."},
			{0, arrive("b", reader, maxHold(time.Second)), ""},
			{0, arrive("c", reader, maxHold(time.Second), future), ""},
			{0, answer(1, granted(10)), "a has 10; b has 10; acquire o2 watch requests ttl=1.21s grant=1.21s; alarm 1s"},
		}, "holding 10 until 1s"},
	})
}
