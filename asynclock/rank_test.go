// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

// W9: when a dead holder's TTL is over, only the first in the queue asks. The
// others would ask in vain, all of them.
func TestOnlyTheFirstAsksForADeadHoldersKey(t *testing.T) {
	story(t, func(w *world) {
		const alive = 2 * time.Second
		died := time.Now()
		stranger := w.session()
		for _, request := range []store.AcquireRequest{
			{Key: "key", Owner: "dead", TTL: alive},
			{Key: "key", Owner: "first", TTL: time.Second, GrantTTL: time.Second, WaiterTTL: time.Hour, Wait: true},
		} {
			if reply := stranger.Acquire(w.Context(), []store.AcquireRequest{request})[0]; reply.Err != nil {
				w.Fatal(reply.Err)
			}
		}
		// The first heartbeat is due after three seconds, less a fifth at most.
		second := w.ask(w.Context(), w.client(asynclock.WithTTL(time.Hour)), "key")
		w.pass(alive + 10*time.Millisecond)
		near := func(c asynclocktest.Call) bool { return c.At.Sub(died.Add(alive)).Abs() <= 10*time.Millisecond }
		w.wantCalls(asynclocktest.Acquire.From(0).Where(near), 0) // it was not its turn
		unlock(w, second.get())
	})
}
