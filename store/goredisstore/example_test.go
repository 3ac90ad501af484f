// SPDX-License-Identifier: Apache-2.0

package goredisstore_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/redis/go-redis/v9"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/goredisstore"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

// One configuration serves the application's client and the locks. This example runs where
// ASYNCLOCK_REDIS_URL names a server.
func ExampleOpen() {
	ctx := context.Background()
	options, err := redis.ParseURL(os.Getenv("ASYNCLOCK_REDIS_URL"))
	if err != nil {
		log.Fatal(err)
	}
	client := redis.NewClient(options)
	defer client.Close()

	// A server of these tests has just started. In production leave the last option out.
	store, err := goredisstore.Open(options, redisstore.WithPrefix("goredisstore-example"), redisstore.WithoutFailoverGrace())
	if err != nil {
		log.Fatal(err)
	}
	locks, err := asynclock.New(store, asynclock.WithOwnedStore())
	if err != nil {
		log.Fatal(err)
	}
	err = locks.WithLock(ctx, "order:42", func(ctx context.Context, _ *asynclock.Lease) error {
		return client.Set(ctx, "goredisstore-example", "paid", 0).Err() // ctx ends if the lease is lost
	})
	fmt.Println("done:", errors.Join(err, client.Del(ctx, "goredisstore-example").Err(), locks.Close(ctx)))
	// Output: done: <nil>
}

// The application's own client serves the locks, too. This example runs where ASYNCLOCK_REDIS_URL names
// a server.
func ExampleNew() {
	ctx := context.Background()
	options, err := redis.ParseURL(os.Getenv("ASYNCLOCK_REDIS_URL"))
	if err != nil {
		log.Fatal(err)
	}
	client := redis.NewClient(options)
	defer client.Close()

	// A server of these tests has just started. In production leave the last option out.
	store, err := goredisstore.New(client, redisstore.WithPrefix("goredisstore-example"), redisstore.WithoutFailoverGrace())
	if err != nil {
		log.Fatal(err)
	}
	locks, err := asynclock.New(store, asynclock.WithOwnedStore())
	if err != nil {
		log.Fatal(err)
	}
	err = locks.WithLock(ctx, "order:43", func(context.Context, *asynclock.Lease) error { return nil })
	fmt.Println("done:", errors.Join(err, locks.Close(ctx)))
	// Output: done: <nil>
}

// An error names the field that can't be carried.
func ExampleOptionError() {
	_, err := goredisstore.Open(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:6379"}, ReadOnly: true})
	var refused *goredisstore.OptionError
	fmt.Println(errors.As(err, &refused), refused.Field)
	fmt.Println(err)
	// Output:
	// true ReadOnly
	// goredisstore: redis.ClusterOptions.ReadOnly reads from replicas, and a lock must not: leave it out, here or in a copy of the options
}

// Sentinels and servers that speak TLS. The sentinels have a user of their own.
func ExampleOpen_sentinel() {
	var ours tls.Certificate // from tls.LoadX509KeyPair
	roots := x509.NewCertPool()
	options := &redis.FailoverOptions{
		MasterName:       "main",
		SentinelAddrs:    []string{"sentinel1.internal:26379", "sentinel2.internal:26379", "sentinel3.internal:26379"},
		SentinelUsername: "watcher", SentinelPassword: os.Getenv("SENTINEL_PASSWORD"),
		Username: "locker", Password: os.Getenv("REDIS_PASSWORD"),
		TLSConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{ours}}, // for sentinels, too
	}
	store, err := goredisstore.Open(options)
	if err != nil {
		log.Fatal(err)
	}
	store.Close()
}
