// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"github.com/asynclock/asynclock-go/asynclock"
)

func Example_redislock() {
	onRedis(func(ctx context.Context, address string, locks *asynclock.Client) error {
		client := redis.NewClient(&redis.Options{Addr: address})
		defer client.Close()
		locker := redislock.New(client)
		if err := redislockBefore(ctx, locker); err != nil {
			return err
		}
		if err := redislockAfter(ctx, locks); err != nil {
			return err
		}
		if err := redislockSeveral(ctx, locker, locks); err != nil {
			return err
		}
		return redislockBoth(ctx, locks, locker, func(ctx context.Context) error {
			_, err := locker.Obtain(ctx, "order:42", time.Second, nil)
			fmt.Println("the old release is kept out:", errors.Is(err, redislock.ErrNotObtained))
			tryNew(locks, "order:42")
			return saveOrder(ctx, 42)
		})
	})
	// Output:
	// saved order 42
	// saved order 42
	// saved order 42
	// saved order 42
	// the old release is kept out: true
	// the new release is kept out: true
	// saved order 42
}

func redislockBefore(ctx context.Context, locker *redislock.Client) error {
	lock, err := locker.Obtain(ctx, "order:42", 30*time.Second, &redislock.Options{
		RetryStrategy: redislock.LimitRetry(redislock.LinearBackoff(100*time.Millisecond), 50),
	})
	if err != nil {
		return err
	}
	defer lock.Release(ctx)
	return saveOrder(ctx, 42)
}

func redislockAfter(ctx context.Context, locks *asynclock.Client) error {
	return locks.WithLock(ctx, "order:42", func(ctx context.Context, lease *asynclock.Lease) error {
		return saveOrder(ctx, 42) // ctx ends if the lease is lost
	}, asynclock.WithTTL(30*time.Second), asynclock.WithWait(5*time.Second))
}

func redislockSeveral(ctx context.Context, locker *redislock.Client, locks *asynclock.Client) error {
	keys := []string{"account:7", "account:3"}
	lock, err := locker.ObtainMulti(ctx, keys, 30*time.Second, nil)
	if err != nil {
		return err
	}
	if err := saveOrder(ctx, 42); err != nil {
		return err
	}
	if err := lock.Release(ctx); err != nil {
		return err
	}

	return locks.WithLockAll(ctx, keys, func(ctx context.Context, lease *asynclock.MultiLease) error {
		return saveOrder(ctx, 42)
	}, asynclock.WithWait(0))
}

func redislockBoth(ctx context.Context, locks *asynclock.Client, locker *redislock.Client, save func(context.Context) error) error {
	const ttl = 30 * time.Second
	return locks.WithLock(ctx, "order:42", func(ctx context.Context, _ *asynclock.Lease) error {
		retry := redislock.LimitRetry(redislock.LinearBackoff(100*time.Millisecond), 50)
		asked := time.Now()
		lock, err := locker.Obtain(ctx, "order:42", ttl, &redislock.Options{RetryStrategy: retry})
		if err != nil {
			return err
		}
		defer lock.Release(context.WithoutCancel(ctx))
		ctx, cancel := context.WithDeadline(ctx, asked.Add(ttl)) // nobody refreshes the old lock
		defer cancel()
		return save(ctx)
	})
}
