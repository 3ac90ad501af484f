// SPDX-License-Identifier: Apache-2.0

// Command s3-fence changes an object in S3 under a lock, and refuses a holder that overslept. The bucket is a small
// S3 in this process.
//
// Use it where the lock protects an object in a store that has conditional writes, and no transactions. bucket.go
// is what to copy. The object has its token in the body, because S3 makes the ETag of the body alone. Were the
// token in the metadata, a later holder that writes the same state would leave the same ETag.
//
// If the lease is lost, the context ends the work. A holder that goes on regardless reads the object, finds a larger
// token and gives up. If the later holder writes between this read and the write, If-Match refuses the write.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/store/memstore"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

const key = "order:42"

func main() {
	url := flag.String("redis", "", "where the locks are, as redis://localhost:6379; without it: in this process")
	flag.Parse()
	if err := run(context.Background(), connector(*url)); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, connect func() (*asynclock.Client, error)) error {
	orders, stop, err := newBucket("orders")
	if err != nil {
		return err
	}
	defer stop()
	first, err := connect()
	if err != nil {
		return err
	}
	defer first.Close(ctx)
	second, err := connect()
	if err != nil {
		return err
	}
	defer second.Close(ctx)

	err = first.WithLock(ctx, key, func(ctx context.Context, lease *asynclock.Lease) error {
		return orders.save(ctx, lease, "42.json", "new")
	})
	if err != nil {
		return err
	}
	fmt.Println("saved: new")

	// The next holder is paused at work, for longer than its TTL. Here an operator takes the key meanwhile.
	sleeper, err := first.Lock(ctx, key)
	if err != nil {
		return err
	}
	if _, err := second.ForceUnlock(ctx, key, sleeper.Token()); err != nil {
		return err
	}
	err = second.WithLock(ctx, key, func(ctx context.Context, lease *asynclock.Lease) error {
		return orders.save(ctx, lease, "42.json", "paid")
	})
	if err != nil {
		return err
	}
	fmt.Println("saved: paid")

	// The sleeper has noticed nothing, so it does not work under the context of its lease.
	err = orders.save(ctx, sleeper, "42.json", "cancelled")
	fmt.Println("the sleeper is refused:", errors.Is(err, fence.ErrStale))
	fmt.Println("it had lost its lease:", errors.Is(sleeper.Unlock(ctx), asynclock.ErrLost))
	if err := race(ctx, orders, second); err != nil {
		return err
	}
	o, _, err := orders.get(ctx, "42.json")
	fmt.Println("the object says:", o.State)
	return err
}

// race lets a later holder write between the sleeper's read and its write, and even the state that was there.
func race(ctx context.Context, orders *bucket, locks *asynclock.Client) error {
	sleeper, err := locks.Lock(ctx, key)
	if err != nil {
		return err
	}
	old, etag, err := orders.get(ctx, "42.json")
	if err != nil {
		return err
	}
	if err := sleeper.Unlock(ctx); err != nil { // its lease is over, however that came
		return err
	}
	err = locks.WithLock(ctx, key, func(ctx context.Context, lease *asynclock.Lease) error {
		return orders.save(ctx, lease, "42.json", old.State)
	})
	if err != nil {
		return err
	}
	err = orders.put(ctx, "42.json", object{"cancelled", sleeper.Token()}, etag)
	fmt.Println("a write between read and write is noticed:", errors.Is(err, errChanged))
	return nil
}

// newBucket starts the S3, which wants no signatures.
func newBucket(name string) (b *bucket, stop func(), err error) {
	storage := s3mem.New()
	if err := storage.CreateBucket(name); err != nil {
		return nil, nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	server := &http.Server{Handler: gofakes3.New(storage).Server(), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // until stop
	return &bucket{"http://" + listener.Addr().String() + "/" + name}, func() { server.Close() }, nil
}

// connector returns what makes the client of a process: of the Redis at url, or, without one, of a store in
// memory, which all clients share as they would a server.
func connector(url string) func() (*asynclock.Client, error) {
	if url == "" {
		store := memstore.New()
		return func() (*asynclock.Client, error) { return asynclock.New(store) }
	}
	return func() (*asynclock.Client, error) {
		store, err := redisstore.OpenURL(url)
		if err != nil {
			return nil, err
		}
		return asynclock.New(store, asynclock.WithOwnedStore())
	}
}
