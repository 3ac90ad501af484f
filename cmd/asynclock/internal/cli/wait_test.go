// SPDX-License-Identifier: Apache-2.0

package cli_test

import "testing"

// TestWaitForAKey: free and held, and without a place in its queue.
func TestWaitForAKey(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	locks := redis.newClient(t)
	redis.run(t, "wait", "k", "--timeout", "0").want(t, 0)
	redis.run(t, "wait", "k", "--free").want(t, 0)
	redis.run(t, "wait", "k", "--held", "--timeout", "0.3").want(t, 124, `nobody holds "k", after 300ms`)
	waits := redis.background(t.Context(), "wait", "k", "--held")
	holds := redis.talk(t, "hold", "k")
	holds.says(t, "\n")
	finished(t, waits).want(t, 0)
	waits = redis.background(t.Context(), "wait", "k")
	redis.run(t, "wait", "k", "--timeout", "1").want(t, 124, `"k" is held by `, ", after 1s")
	if info, err := locks.Inspect(t.Context(), "k"); err != nil || info.Waiters != 0 {
		t.Errorf("got %+v, %v; want nobody in the queue", info, err)
	}
	holds.stdin.Close()
	finished(t, holds.done).want(t, 0)
	finished(t, waits).want(t, 0)
}
