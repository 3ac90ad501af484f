// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A function stops when its lease is lost, and says why. For leaders there is package elect.
func ExampleLease_Context() {
	ctx, shutdown := context.WithCancel(context.Background())
	defer shutdown()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close(ctx)

	for ctx.Err() == nil {
		err := locks.WithLock(ctx, "leader", func(ctx context.Context, _ *asynclock.Lease) error {
			fmt.Println("leads")
			shutdown() // stands for a signal
			<-ctx.Done()
			return context.Cause(ctx) // why we no longer lead
		})
		fmt.Println(err)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second): // the store may be unreachable
		}
	}
	// Output:
	// leads
	// context canceled
}

// Code deep below finds the token of the lease that it runs under.
func ExampleLeaseFrom() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close(ctx)

	save := func(ctx context.Context) error {
		lease, ok := asynclock.LeaseFrom(ctx, "order:42")
		if !ok {
			return errors.New("order 42 is not locked")
		}
		return saveOrder(ctx, 42, lease.Token())
	}
	err = locks.WithLock(ctx, "order:42", func(ctx context.Context, _ *asynclock.Lease) error {
		return save(ctx)
	})
	fmt.Println(err)
	fmt.Println(save(ctx))
	// Output:
	// <nil>
	// order 42 is not locked
}

// A worker takes whichever of its keys is free first, without a goroutine for each.
func ExampleClient_LockEach() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close(ctx)

	keys := []string{"customer:1", "customer:2", "customer:3"}
	for result := range locks.LockEach(ctx, slices.Values(keys)) { // in each worker, if there are several
		lease, err := result.Lease()
		if err != nil {
			fmt.Println(result.Key(), err)
			continue
		}
		fmt.Println("serves", result.Key())
		if err := lease.Unlock(ctx); err != nil {
			fmt.Println(err)
		}
	}
	// Unordered output:
	// serves customer:1
	// serves customer:2
	// serves customer:3
}

// The keys may come from a queue that never ends. The iterator waits for its next message, and so watches ctx.
func ExampleClient_LockEach_queue() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close(context.Background())

	queue := make(chan string, 3)
	queue <- "customer:1"
	messages := func(yield func(string) bool) {
		for {
			select {
			case key := <-queue:
				if !yield(key) {
					return // the worker has got an error for it, as for all that are under way
				}
			case <-ctx.Done():
				return
			}
		}
	}
	for result := range locks.LockEach(ctx, messages, asynclock.WithWindow(8)) {
		lease, err := result.Lease()
		if err != nil {
			fmt.Println(errors.Is(err, context.Canceled)) // no key: ctx has ended
			continue
		}
		fmt.Println("serves", result.Key())
		lease.UnlockChan(ctx)
		cancel() // the process is to stop
	}
	// Output:
	// serves customer:1
	// true
}

// A worker that is sent the same few customers over and over keeps their keys for
// a moment, and gives one back as soon as another process wants it.
func ExampleWithRetention() {
	ctx := context.Background()
	store := memstore.New() // one process's store; usually, use the one that all processes share
	locks, err := asynclock.New(store, asynclock.WithRetention(time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)
	other, err := asynclock.New(store)
	if err != nil {
		log.Print(err)
		return
	}
	defer other.Close(ctx)

	for _, item := range []string{"pen", "paper", "ink"} {
		err := locks.WithLock(ctx, "customer:7", func(context.Context, *asynclock.Lease) error {
			fmt.Println("packed:", item) // the store was asked for the key of the first one only
			return nil
		})
		if err != nil {
			log.Print(err)
		}
	}
	info, err := other.Inspect(ctx, "customer:7")
	if err != nil {
		log.Print(err)
	}
	fmt.Println("held between two orders:", info.Held)

	lease, err := other.Lock(ctx, "customer:7")
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println("and the other's when it asks")
	lease.Unlock(ctx)
	// Output:
	// packed: pen
	// packed: paper
	// packed: ink
	// held between two orders: true
	// and the other's when it asks
}

// A lines is a channel of log lines.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// An early return forgets the lease, and the log says so.
func ExampleWithLeakDetection() {
	store, log := memstore.New(), make(lines, 10)
	logger := slog.New(slog.NewTextHandler(log, nil))
	locks, err := asynclock.New(store, asynclock.WithLeakDetection(true), asynclock.WithLogger(logger))
	if err != nil {
		fmt.Println(err)
		return
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	defer locks.Close(ended) // or it would wait for the lease

	book := func(sold bool) error {
		lease, err := locks.Lock(context.Background(), "seat:12A")
		if err != nil || sold {
			return err
		}
		return lease.Unlock(context.Background())
	}
	fmt.Println(book(true))
	for {
		runtime.GC() // as happens in any program that goes on
		select {
		case line := <-log:
			for _, part := range []string{"a lease was forgotten", "example_lease_test.go:", "key=seat:12A"} {
				fmt.Println(part, strings.Contains(line, part))
			}
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	// Output:
	// <nil>
	// a lease was forgotten true
	// example_lease_test.go: true
	// key=seat:12A true
}
