// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A loop that leaves a future behind in each turn costs no more memory after many turns, and no turn is refused.
// Real time and a real collector.
func TestFuturesThatNobodyRefersToDoNotAddUp(t *testing.T) {
	shared := memstore.New()
	ours, err := asynclock.New(shared)
	if err != nil {
		t.Fatal(err)
	}
	defer abandon(ours)
	theirs, err := asynclock.New(shared)
	if err != nil {
		t.Fatal(err)
	}
	defer abandon(theirs)
	for name, held := range map[string]bool{"the key is held": true, "the key is free": false} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if held {
				l := lock(t, theirs, name)
				defer unlock(t, l)
			}
			turns := func(n int) {
				for i := range n {
					select {
					case got := <-ours.LockChan(ctx, name):
						l, err := got.Lease()
						if err != nil {
							t.Fatal(err)
						}
						unlock(t, l)
					default:
					}
					if i%1000 == 0 {
						runtime.GC()
					}
				}
			}
			turns(10_000)
			before := int64(heap())
			turns(50_000)
			if more := int64(heap()) - before; more > 2<<20 {
				t.Errorf("50,000 turns left %d bytes behind", more)
			}
			kept := ours.LockChan(ctx, name)
			if !held {
				unlock(t, claim(t, kept))
			}
			runtime.KeepAlive(kept)
		})
	}
}
