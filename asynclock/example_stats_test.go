// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"expvar"
	"fmt"
	"log"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

func ExampleClient_Stats() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)
	expvar.Publish("locks", expvar.Func(func() any { return locks.Stats() })) // at /debug/vars

	lease, err := locks.Lock(ctx, "order:42")
	if err != nil {
		log.Fatal(err)
	}
	_, err = locks.TryLock(ctx, "order:42")
	fmt.Println(err != nil)

	s := locks.Stats().Exclusive
	fmt.Println("requested", s.Requested, "acquired", s.Acquired.Sum(), "refused", s.Refused.Held, "held now", s.Held)
	_ = lease.Unlock(ctx)
	s = locks.Stats().Exclusive
	fmt.Println("unlocked", s.Ended.Unlocked, "lost", s.Ended.Lost(), "held now", s.Held)
	// Output:
	// true
	// requested 2 acquired 1 refused 1 held now 1
	// unlocked 1 lost 0 held now 0
}

// A warning of each lease that was lost, or held for more than a minute.
func ExampleWithHooks() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New(), asynclock.WithClass("order"), asynclock.WithHooks(asynclock.Hooks{
		Waited: func(_ context.Context, e asynclock.WaitedEvent) {
			fmt.Println(e.Class, e.Outcome, e.Way)
		},
		Held: func(_ context.Context, e asynclock.HeldEvent) {
			if e.End != "unlocked" || e.Held > time.Minute {
				fmt.Println("look at", e.Key, "with token", e.Token, "which ended:", e.End)
			}
		},
	}))
	if err != nil {
		log.Fatal(err)
	}
	err = locks.WithLock(ctx, "order:42", func(ctx context.Context, lease *asynclock.Lease) error {
		<-ctx.Done() // too slow
		return nil
	}, asynclock.WithMaxHold(100*time.Millisecond))
	_ = locks.Close(ctx) // waits for hooks
	fmt.Println(err)
	// Output:
	// order acquired at_once
	// look at order:42 with token 1 which ended: max_hold
	// asynclock: unlock "order:42": lease lost: maximum hold reached
}
