// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// At most three calls of a slow service at the same time, in all processes.
func ExampleClient_Semaphore() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	slots, err := locks.Semaphore("service:reports", 3)
	if err != nil {
		log.Fatal(err)
	}
	err = slots.With(ctx, 1, func(ctx context.Context, lease *asynclock.Lease) error {
		fmt.Println("calling with", lease.Weight(), "permit")
		return nil // the permit is given back
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// calling with 1 permit
}

// A large job takes several permits.
func ExampleSemaphore_Acquire() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	gpus, err := locks.Semaphore("gpus", 4)
	if err != nil {
		log.Fatal(err)
	}
	large, err := gpus.Acquire(ctx, 3)
	if err != nil {
		log.Fatal(err)
	}
	defer large.Unlock(ctx)

	_, err = gpus.TryAcquire(ctx, 2)
	fmt.Println("two more have to wait:", errors.Is(err, asynclock.ErrHeld))
	_, err = gpus.Acquire(ctx, 5)
	fmt.Println("five there never are:", errors.Is(err, asynclock.ErrPermits))
	// Output:
	// two more have to wait: true
	// five there never are: true
}

// A select takes a permit if one comes free in time.
func ExampleSemaphore_AcquireChan() {
	ctx, giveUp := context.WithCancel(context.Background())
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(context.Background())

	slots, err := locks.Semaphore("slots", 1)
	if err != nil {
		log.Fatal(err)
	}
	quit := make(chan struct{})
	select {
	case got := <-slots.AcquireChan(ctx, 1):
		lease, err := got.Lease()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("weight", lease.Weight())
		_ = lease.Unlock(ctx)
	case <-quit:
	}
	giveUp()
	// Output:
	// weight 1
}

// An operator halves the number of permits while programs run.
func ExampleSemaphore_SetPermits() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	slots, err := locks.Semaphore("slots", 4)
	if err != nil {
		log.Fatal(err)
	}
	if err := slots.SetPermits(ctx, 2); err != nil {
		log.Fatal(err)
	}
	_, err = slots.TryAcquire(ctx, 3)
	fmt.Println(errors.Is(err, asynclock.ErrPermits))
	// Output:
	// true
}
