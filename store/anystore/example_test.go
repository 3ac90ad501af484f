// SPDX-License-Identifier: Apache-2.0

package anystore_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/alicebob/miniredis/v2"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/anystore"
)

// The configuration says where the locks are: in Redis, a database or ZooKeeper.
func Example() {
	ctx := context.Background()
	server, err := miniredis.Run() // stands for yours
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	url := "redis://" + server.Addr() + "?prefix=shop&failover_grace=off" // os.Getenv("ASYNCLOCK_STORE")

	if err := anystore.Migrate(ctx, url); err != nil { // Redis has no tables, another store may
		log.Fatal(err)
	}
	store, err := anystore.Open(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	locks, err := asynclock.New(store, asynclock.WithOwnedStore())
	if err != nil {
		log.Fatal(err)
	}
	err = locks.WithLock(ctx, "order:42", func(ctx context.Context, lease *asynclock.Lease) error {
		fmt.Println(lease.Key(), "is ours")
		return ctx.Err()
	})
	if err := errors.Join(err, locks.Close(ctx)); err != nil {
		log.Fatal(err)
	}
	// Output: order:42 is ours
}
