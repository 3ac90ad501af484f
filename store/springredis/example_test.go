// SPDX-License-Identifier: Apache-2.0

package springredis_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/springredis"
)

// A Go client beside a Java service whose registry key is "shop", and which has
// just locked "order:42".
func Example() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	// Here Java has taken the lock.
	if err := server.Set("shop:order:42", "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed"); err != nil {
		log.Fatal(err)
	}
	server.SetTTL("shop:order:42", springredis.DefaultTTL)

	ctx := context.Background()
	store, err := springredis.Open(rueidis.ClientOption{InitAddress: []string{server.Addr()}}, "shop",
		springredis.WithLockType(springredis.PubSubLock)) // as setRedisLockType in Java
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	locks, err := asynclock.New(store, asynclock.WithTTL(springredis.DefaultTTL), asynclock.WithReentry(true))
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	_, err = locks.TryLock(ctx, "order:42")
	var held *asynclock.HeldError
	if errors.As(err, &held) {
		fmt.Println("held by", held.Holder)
	}
	err = locks.WithLock(ctx, "order:43", func(context.Context, *asynclock.Lease) error {
		fmt.Println("Java can't have it now:", server.Exists("shop:order:43"))
		return nil
	})
	fmt.Println("and now it can:", err == nil && !server.Exists("shop:order:43"))
	// Output:
	// held by Spring RedisLockRegistry 1b9d6bcd…
	// Java can't have it now: true
	// and now it can: true
}

// The server is named by a URL. The database in it is that of the Java service.
func ExampleOpenURL() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	store, err := springredis.OpenURL("redis://"+server.Addr()+"/0", "shop")
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	locks, err := asynclock.New(store, asynclock.WithTTL(springredis.DefaultTTL), asynclock.WithReentry(true))
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(context.Background())

	lease, err := locks.Lock(context.Background(), "order:42")
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Unlock(context.Background())
	fmt.Println("Java can't have it now:", server.Exists("shop:order:42"))
	// Output:
	// Java can't have it now: true
}
