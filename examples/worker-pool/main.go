// SPDX-License-Identifier: Apache-2.0

// Command worker-pool has two processes with eight workers each. Both want to book something on each of 10,000
// accounts, and an account takes one booking at a time. Each process requests all accounts at once, by futures.
//
// Use it where keys are many and most of them are free: the workers never stand in line for one key while others
// are theirs already. A pending future costs no goroutine. A grant must be claimed within the TTL, or it goes
// to the next waiter. So request as many keys as the workers claim in that time, and not a million.
//
// If a lease is lost, the booking fails, or the ledger refuses it by its token. If the store is silent, nothing is
// held. In each case the worker tries again under a new lease. The ledger knows each booking by its id, so none counts twice.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/store/memstore"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

const (
	accounts  = 10_000
	processes = 2
	workers   = 8 // of each process
)

func main() {
	url := flag.String("redis", "", "where the locks are, as redis://localhost:6379; without it: in this process")
	flag.Parse()
	if err := run(context.Background(), connector(*url)); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, connect func() (*asynclock.Client, error)) error {
	keys := make([]string, accounts)
	for i := range keys {
		keys[i] = fmt.Sprint("account:", i)
	}
	books := &ledger{known: make(map[string]bool)}
	done := make(chan error, processes*workers)
	for p := range processes {
		locks, err := connect()
		if err != nil {
			return err
		}
		defer locks.Close(ctx)
		before := runtime.NumGoroutine()
		futures := locks.LockEach(ctx, keys)
		if p == 0 {
			fmt.Printf("futures: %d, goroutines for each: %d\n", cap(futures), (runtime.NumGoroutine()-before)/len(keys))
		}
		var left atomic.Int64
		left.Store(int64(len(keys)))
		for range workers {
			go func() { done <- worker{fmt.Sprint("process ", p), locks, books}.work(ctx, futures, &left) }()
		}
	}
	var failed error
	for range processes * workers {
		failed = errors.Join(failed, <-done)
	}
	fmt.Println("bookings:", len(books.known))
	fmt.Println("two at a time on one account:", books.overlaps.Load())
	return failed
}

// A worker books what its process has to book.
type worker struct {
	process string
	locks   *asynclock.Client
	books   *ledger
}

// work serves accounts in the order in which their keys come, until none is left.
func (w worker) work(ctx context.Context, futures <-chan asynclock.Result, left *atomic.Int64) error {
	var failed error
	for left.Add(-1) >= 0 {
		future := <-futures // always comes, also after the end of ctx
		failed = errors.Join(failed, w.serve(ctx, future))
	}
	return failed
}

// serve books on the account of a future.
func (w worker) serve(ctx context.Context, future asynclock.Result) error {
	lease, err := future.Lease() // the claim: from here on the lease is ours, and is renewed
	for {
		if err == nil {
			err = w.books.book(lease.Context(), lease, w.process+" "+future.Key())
			lease.UnlockChan(ctx) // a loss is of no interest any more, if the fence has let us in
		}
		if !passes(err) {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		lease, err = w.locks.Lock(ctx, future.Key()) // wait for our turn again
	}
}

// passes reports whether a repetition may help: we were late, or the store was silent.
func passes(err error) bool {
	return errors.Is(err, asynclock.ErrNotClaimed) || errors.Is(err, asynclock.ErrLost) || errors.Is(err, fence.ErrStale) ||
		errors.Is(err, asynclock.ErrUnreachable)
}

// A ledger stands for your database.
type ledger struct {
	gate     fence.Gate
	atWork   sync.Map // the accounts
	overlaps atomic.Int32

	mu    sync.Mutex
	known map[string]bool // the ids of bookings
}

// book books, unless a later holder of the account's key has been there.
func (l *ledger) book(ctx context.Context, account fence.Holder, id string) error {
	if _, loaded := l.atWork.LoadOrStore(account.Key(), id); loaded {
		l.overlaps.Add(1)
	}
	defer l.atWork.Delete(account.Key())
	return l.gate.Do(ctx, account, func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.known[id] = true // in a database: in the transaction that has the fence
		return nil
	})
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
