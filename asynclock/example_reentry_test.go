// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"sync/atomic"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A function that locks is called by another that has locked the same key. Without re-entry that is an error, at once.
// With re-entry the inner call shares the outer lease.
func ExampleWithReentry() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	cancelOrder := func(ctx context.Context, options ...asynclock.LockOption) error {
		return locks.WithLock(ctx, "order:42", func(_ context.Context, lease *asynclock.Lease) error {
			fmt.Println("cancelled under a lease of", lease.Key())
			return nil
		}, options...)
	}
	err = locks.WithLock(ctx, "order:42", func(ctx context.Context, _ *asynclock.Lease) error {
		err := cancelOrder(ctx)
		fmt.Println("nested by mistake:", errors.Is(err, asynclock.ErrReentry))
		return cancelOrder(ctx, asynclock.WithReentry(true))
	})
	fmt.Println(err)
	fmt.Println(cancelOrder(ctx, asynclock.WithReentry(true))) // without a lease around it, it takes the key
	// Output:
	// nested by mistake: true
	// cancelled under a lease of order:42
	// <nil>
	// cancelled under a lease of order:42
	// <nil>
}

// Goroutines that ask for re-entry under one lease are inside together. The lease excludes others, not them. Without
// re-entry each of them is refused. Lock what they must not do together by a key of its own, or by a mutex.
func ExampleWithReentry_fanOut() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	fanOut := func(reentry bool) (inside, refused int) {
		var entered, failed atomic.Int32
		err := locks.WithLock(ctx, "order:42", func(ctx context.Context, _ *asynclock.Lease) error {
			var parts, together sync.WaitGroup
			for range 3 {
				together.Add(1)
				parts.Go(func() {
					err := locks.WithLock(ctx, "order:42", func(context.Context, *asynclock.Lease) error {
						together.Done()
						together.Wait() // all three are here at the same time
						entered.Add(1)
						return nil
					}, asynclock.WithReentry(reentry))
					if errors.Is(err, asynclock.ErrReentry) {
						failed.Add(1)
					}
				})
			}
			parts.Wait()
			return nil
		})
		if err != nil {
			log.Fatal(err)
		}
		return int(entered.Load()), int(failed.Load())
	}
	inside, refused := fanOut(false)
	fmt.Println("by default:", inside, "inside,", refused, "refused")
	inside, refused = fanOut(true)
	fmt.Println("with re-entry:", inside, "inside,", refused, "refused")
	// Output:
	// by default: 0 inside, 3 refused
	// with re-entry: 3 inside, 0 refused
}

// Work that goes on after the lease takes the context from outside it, and so waits for the key like anyone else.
func ExampleClient_LockChan_afterTheLease() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	var later <-chan asynclock.Result
	err = locks.WithLock(ctx, "order:42", func(inner context.Context, _ *asynclock.Lease) error {
		_, err := (<-locks.LockChan(context.WithoutCancel(inner), "order:42")).Lease() // still under the lease
		fmt.Println("refused:", errors.Is(err, asynclock.ErrReentry))
		later = locks.LockChan(ctx, "order:42")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	lease, err := (<-later).Lease()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("had after the lease:", lease.Valid(0))
	fmt.Println(lease.Unlock(ctx))
	// Output:
	// refused: true
	// had after the lease: true
	// <nil>
}
