// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"

	"github.com/alicebob/miniredis/v2"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

// onRedis runs an example on a server of its own, with a client of it. It prints the example's error.
func onRedis(example func(ctx context.Context, address string, locks *asynclock.Client) error) {
	if err := tryOnRedis(example); err != nil {
		fmt.Println(err)
	}
}

func tryOnRedis(example func(ctx context.Context, address string, locks *asynclock.Client) error) error {
	ctx := context.Background()
	server, err := miniredis.Run()
	if err != nil {
		return err
	}
	defer server.Close()
	store, err := redisstore.OpenURL("redis://"+server.Addr(), redisstore.WithoutFailoverGrace())
	if err != nil {
		return err
	}
	locks, err := asynclock.New(store, asynclock.WithOwnedStore())
	if err != nil {
		return err
	}
	return errors.Join(example(ctx, server.Addr(), locks), locks.Close(ctx))
}

// saveOrder stands for work that the lock protects.
func saveOrder(ctx context.Context, id int) error {
	fmt.Println("saved order", id)
	return ctx.Err()
}

// tryNew prints whether a service with the new lock alone is kept out.
func tryNew(locks *asynclock.Client, key string) {
	_, err := locks.TryLock(context.Background(), key)
	fmt.Println("the new release is kept out:", errors.Is(err, asynclock.ErrHeld))
}
