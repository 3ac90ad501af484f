// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

// saveOrder stands for a write. It carries the token of its lease, so that the database can
// refuse the write if a later holder has written.
func saveOrder(ctx context.Context, id int, token int64) error {
	return ctx.Err()
}

// The whole of it: connect, lock, work, unlock.
func Example() {
	ctx := context.Background()

	store, err := redisstore.OpenURL("redis://127.0.0.1:6379")
	if err != nil {
		log.Fatal(err)
	}
	locks, err := asynclock.New(store, asynclock.WithOwnedStore())
	if err != nil {
		log.Fatal(err)
	}
	err = locks.WithLock(ctx, "order:42", func(ctx context.Context, lease *asynclock.Lease) error {
		return saveOrder(ctx, 42, lease.Token()) // ctx ends if the lease is lost
	})
	if err := errors.Join(err, locks.Close(ctx)); err != nil {
		log.Fatal(err)
	}
}

// The server's URL comes from the environment, as that of the command asynclock does.
func ExampleOpenURL() {
	store, err := redisstore.OpenURL(os.Getenv("ASYNCLOCK_REDIS_URL"))
	if err != nil {
		log.Fatal(err) // does not show the password
	}
	defer store.Close()
	locks, err := asynclock.New(store)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(context.Background())
}

// On a developer's machine a server that has just started grants its first lock at once. Elsewhere
// it must not, because it may have forgotten a holder.
func ExampleWithoutFailoverGrace() {
	var options []redisstore.Option
	if os.Getenv("STAGE") == "development" {
		options = append(options, redisstore.WithoutFailoverGrace())
	}
	store, err := redisstore.OpenURL(os.Getenv("ASYNCLOCK_REDIS_URL"), options...)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
}

// A pending lock is a channel.
func Example_select() {
	ctx, shutdown := context.Background(), make(chan struct{})
	var locks *asynclock.Client
	write := func(lease *asynclock.Lease) {
		fmt.Println("reporting under token", lease.Token())
		if err := lease.Unlock(ctx); err != nil {
			log.Print(err) // the lease was lost, or its end is not confirmed yet
		}
	}

	report := func() error {
		wait, cancel := context.WithCancel(ctx) // ends the waiting, not the lease
		defer cancel()
		select {
		case got := <-locks.LockChan(wait, "report:daily"):
			lease, err := got.Lease() // ours since we have received it
			if err != nil {
				return err
			}
			go write(lease) // any goroutine may unlock it
		case <-shutdown:
		}
		return nil
	}
	if err := report(); err != nil {
		log.Print(err)
	}
}

// This example handles each kind of failure.
func Example_errors() {
	ctx := context.Background()
	var locks *asynclock.Client

	lease, err := locks.TryLock(ctx, "report:daily")
	var held *asynclock.HeldError
	switch {
	case errors.As(err, &held):
		fmt.Println("held by", held.Holder, "for", held.Remaining, "more, unless renewed")
		return
	case errors.Is(err, store.ErrUnreachable):
		fmt.Println("Redis does not answer; nobody knows who holds it")
		return
	case err != nil:
		log.Print(err)
		return
	}
	defer lease.Unlock(ctx)

	select {
	case <-time.After(time.Minute): // the work
	case <-lease.Done():
		fmt.Println("stop at once:", lease.Err()) // expired, stolen, forced, not renewed, ...
	}
}

// How long a call waits is its own affair.
func Example_wait() {
	var (
		locks *asynclock.Client
		r     *http.Request
	)
	ctx := context.Background()
	save := func(ctx context.Context, lease *asynclock.Lease) error { return saveOrder(ctx, 42, lease.Token()) }
	report := func(ctx context.Context, _ *asynclock.Lease) error { return ctx.Err() }

	// A request waits for at most two seconds. Then the error says who has the key.
	orderErr := locks.WithLock(r.Context(), "order:42", save, asynclock.WithWait(2*time.Second))

	// A job starts on every host each hour, runs on one of them, and not again within 50 minutes.
	reportErr := locks.WithLock(ctx, "report", report, asynclock.WithWait(0), asynclock.WithMinHold(50*time.Minute))

	if orderErr != nil {
		log.Print(orderErr)
	}
	if reportErr != nil && !errors.Is(reportErr, asynclock.ErrHeld) {
		log.Print(reportErr)
	}
}

// An operator's program ends the graces of a planned failover, of which it is proven that nothing was lost.
func ExampleStore_EndGrace() {
	ctx := context.Background()
	st, err := redisstore.OpenURL(os.Getenv("ASYNCLOCK_REDIS_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	graces, err := st.Graces(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, grace := range graces {
		ended, err := st.EndGrace(ctx, store.GraceEnd{History: grace.History, Before: grace.Before})
		if err != nil {
			log.Printf("a server that was %v: %v", grace.Why, err) // and its grace goes on
			continue
		}
		log.Printf("%d of %d parts of the keys are granted again", ended.Ended, grace.Parts)
	}
}
