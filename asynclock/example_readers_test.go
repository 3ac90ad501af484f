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

// Readers hold a key together. A writer has it alone.
func ExampleClient_RLock() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	first, err := locks.RLock(ctx, "prices")
	if err != nil {
		log.Fatal(err)
	}
	defer first.Unlock(ctx)
	second, err := locks.RLock(ctx, "prices")
	if err != nil {
		log.Fatal(err)
	}
	defer second.Unlock(ctx)

	_, err = locks.TryLock(ctx, "prices")
	fmt.Println("two readers with one token:", first.Token() == second.Token())
	fmt.Println("a writer has to wait:", errors.Is(err, asynclock.ErrHeld))
	// Output:
	// two readers with one token: true
	// a writer has to wait: true
}

// A program that has written goes on reading. Other readers come in, and no writer does.
func ExampleLease_Downgrade() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	writer, err := locks.Lock(ctx, "prices")
	if err != nil {
		log.Fatal(err)
	}
	reader, err := writer.Downgrade(ctx)
	if err != nil {
		log.Fatal(err) // the key was given back
	}
	defer reader.Unlock(ctx)

	fmt.Println("the writer's lease:", writer.Err())
	fmt.Println("a reader's:", reader.Mode() == asynclock.Shared)
	// Output:
	// the writer's lease: asynclock: unlocked
	// a reader's: true
}
