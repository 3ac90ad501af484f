// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A worker that is sent the same few customers over and over keeps their keys for
// a moment, and gives one back as soon as another process wants it.
func ExampleWithRetention() {
	ctx := context.Background()
	store := memstore.New() // one process's store; usually, use the one that all processes share
	locks, err := asynclock.New(store, asynclock.WithRetention(time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)
	other, err := asynclock.New(store)
	if err != nil {
		log.Print(err)
		return
	}
	defer other.Close(ctx)

	for _, item := range []string{"pen", "paper", "ink"} {
		err := locks.WithLock(ctx, "customer:7", func(context.Context, *asynclock.Lease) error {
			fmt.Println("packed:", item) // the store was asked for the key of the first one only
			return nil
		})
		if err != nil {
			log.Print(err)
		}
	}
	info, err := other.Inspect(ctx, "customer:7")
	if err != nil {
		log.Print(err)
	}
	fmt.Println("held between two orders:", info.Held)

	lease, err := other.Lock(ctx, "customer:7")
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println("and the other's when it asks")
	lease.Unlock(ctx)
	// Output:
	// packed: pen
	// packed: paper
	// packed: ink
	// held between two orders: true
	// and the other's when it asks
}
