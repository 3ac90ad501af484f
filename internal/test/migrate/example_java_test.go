// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/once"
	"github.com/asynclock/asynclock-go/store/springredis"
)

func Example_redisson() {
	onRedis(func(ctx context.Context, _ string, locks *asynclock.Client) error { return redissonAfter(ctx, locks) })
	// Output:
	// saved order 42
}

func redissonAfter(ctx context.Context, locks *asynclock.Client) error {
	return locks.WithLock(ctx, "order:42", func(ctx context.Context, lease *asynclock.Lease) error {
		return saveOrder(ctx, 42) // ctx ends if the lease is lost
	}, asynclock.WithWait(2*time.Second))
}

func Example_shedlock() {
	onRedis(func(ctx context.Context, _ string, locks *asynclock.Client) error {
		if err := shedlockAfter(ctx, locks); err != nil {
			return err
		}
		return shedlockAfter(ctx, locks) // on another host
	})
	// Output:
	// report
	// ran: true
	// ran: false
}

func shedlockAfter(ctx context.Context, locks *asynclock.Client) error {
	outcome, err := once.Do(ctx, locks, "report", 24*time.Hour, func(ctx context.Context, run once.Run) error {
		return report(ctx) // ctx ends if the lease is lost
	})
	fmt.Println("ran:", outcome.Ran)
	return err
}

func Example_shedlockMinHold() {
	onRedis(func(ctx context.Context, _ string, locks *asynclock.Client) error { return shedlockMinHold(ctx, locks) })
	// Output:
	// report
}

func shedlockMinHold(ctx context.Context, locks *asynclock.Client) error {
	return locks.WithLock(ctx, "report", func(ctx context.Context, lease *asynclock.Lease) error {
		return report(ctx)
	}, asynclock.WithWait(0), asynclock.WithMinHold(50*time.Minute), asynclock.WithMaxHold(2*time.Hour))
}

func report(ctx context.Context) error {
	fmt.Println("report")
	return ctx.Err()
}

func Example_spring() {
	onRedis(func(ctx context.Context, address string, _ *asynclock.Client) error { return springAfter(ctx, address) })
	// Output:
	// saved order 42
}

func springAfter(ctx context.Context, address string) error {
	store, err := springredis.Open(rueidis.ClientOption{InitAddress: []string{address}}, "shop",
		springredis.WithLockType(springredis.PubSubLock))
	if err != nil {
		return err
	}
	locks, err := asynclock.New(store, asynclock.WithOwnedStore(), asynclock.WithTTL(springredis.DefaultTTL),
		asynclock.WithReentry(true))
	if err != nil {
		return err
	}
	defer locks.Close(ctx)
	return locks.WithLock(ctx, "order:42", func(ctx context.Context, lease *asynclock.Lease) error {
		return saveOrder(ctx, 42)
	}, asynclock.WithWait(2*time.Second))
}
