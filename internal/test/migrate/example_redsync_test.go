// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/asynclock/asynclock-go/asynclock"
)

func Example_redsync() {
	onRedis(func(ctx context.Context, address string, locks *asynclock.Client) error {
		client := redis.NewClient(&redis.Options{Addr: address})
		defer client.Close()
		mutexes := redsync.New(goredis.NewPool(client))
		if err := redsyncBefore(ctx, mutexes); err != nil {
			return err
		}
		if err := redsyncAfter(ctx, locks); err != nil {
			return err
		}
		return redsyncBoth(ctx, locks, mutexes, func(ctx context.Context) error {
			var taken *redsync.ErrTaken
			err := mutexes.NewMutex("order:42", redsync.WithExpiry(time.Minute)).TryLockContext(ctx)
			fmt.Println("the old release is kept out:", errors.As(err, &taken))
			tryNew(locks, "order:42")
			return saveOrder(ctx, 42)
		})
	})
	// Output:
	// saved order 42
	// saved order 42
	// the old release is kept out: true
	// the new release is kept out: true
	// saved order 42
}

func redsyncBefore(ctx context.Context, mutexes *redsync.Redsync) error {
	mutex := mutexes.NewMutex("order:42", redsync.WithExpiry(30*time.Second), redsync.WithTries(100))
	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	defer mutex.UnlockContext(ctx)
	return saveOrder(ctx, 42)
}

func redsyncAfter(ctx context.Context, locks *asynclock.Client) error {
	return locks.WithLock(ctx, "order:42", func(ctx context.Context, lease *asynclock.Lease) error {
		return saveOrder(ctx, 42) // ctx ends if the lease is lost
	}, asynclock.WithTTL(30*time.Second), asynclock.WithWait(15*time.Second))
}

func redsyncBoth(ctx context.Context, locks *asynclock.Client, mutexes *redsync.Redsync, save func(context.Context) error) error {
	return locks.WithLock(ctx, "order:42", func(ctx context.Context, _ *asynclock.Lease) error {
		mutex := mutexes.NewMutex("order:42", redsync.WithExpiry(30*time.Second), redsync.WithTries(100))
		if err := mutex.LockContext(ctx); err != nil {
			return err
		}
		defer mutex.UnlockContext(context.WithoutCancel(ctx))
		ctx, cancel := context.WithDeadline(ctx, mutex.Until()) // nobody extends the old lock
		defer cancel()
		return save(ctx)
	})
}
