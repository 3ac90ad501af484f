// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/asynclock/asynclock-go/asynclock"
)

func Example_rueidislock() {
	onRedis(func(ctx context.Context, address string, locks *asynclock.Client) error {
		locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
			ClientOption: rueidis.ClientOption{InitAddress: []string{address}, DisableCache: true}, // miniredis has no tracking
			KeyMajority:  1,
			TryNextAfter: time.Minute, // of a busy machine
		})
		if err != nil {
			return err
		}
		defer locker.Close()
		if err := rueidislockBefore(ctx, locker); err != nil {
			return err
		}
		if err := rueidislockAfter(ctx, locks); err != nil {
			return err
		}
		return rueidislockBoth(ctx, locks, locker, func(ctx context.Context) error {
			_, _, err := locker.TryWithContext(ctx, "order:42")
			fmt.Println("the old release is kept out:", errors.Is(err, rueidislock.ErrNotLocked))
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

func rueidislockBefore(ctx context.Context, locker rueidislock.Locker) error {
	ctx, cancel, err := locker.WithContext(ctx, "order:42")
	if err != nil {
		return err
	}
	defer cancel()
	return saveOrder(ctx, 42)
}

func rueidislockAfter(ctx context.Context, locks *asynclock.Client) error {
	lease, err := locks.Lock(ctx, "order:42")
	if err != nil {
		return err
	}
	defer lease.Unlock(ctx)
	return saveOrder(lease.Context(), 42) // unlike ctx, it ends with the lease
}

func rueidislockBoth(ctx context.Context, locks *asynclock.Client, locker rueidislock.Locker, save func(context.Context) error) error {
	return locks.WithLock(ctx, "order:42", func(ctx context.Context, _ *asynclock.Lease) error {
		ctx, cancel, err := locker.WithContext(ctx, "order:42")
		if err != nil {
			return err
		}
		defer cancel()
		return save(ctx) // ctx ends with either lock
	})
}
