// SPDX-License-Identifier: Apache-2.0

// Command worker-pool has two processes with eight workers each. Both want to book something on each of 10,000
// accounts, and an account takes one booking at a time.
//
// Use it where keys are many and most of them are free: a worker serves whichever key comes next, and never stands in
// line for one. The keys come from an iterator, which may read them from a queue. They are requested at the pace of the
// workers, however long a job takes, and no goroutine waits for a key.
//
// If a lease is lost, the booking fails, or the ledger refuses it by its token. If the store is silent, nothing is
// held. In each case the worker tries again under a new lease. The ledger knows each booking by its id, so none counts
// twice.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"log"
	"sync"
	"sync/atomic"

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
	books := &ledger{known: make(map[string]bool)}
	done := make(chan error, processes)
	for i := range processes {
		locks, err := connect()
		if err != nil {
			return err
		}
		defer locks.Close(ctx)
		p := process{fmt.Sprint("process ", i+1), locks, books}
		go func() { done <- p.work(ctx, keys) }()
	}
	var failed error
	for range processes {
		failed = errors.Join(failed, <-done)
	}
	fmt.Println("accounts:", accounts)
	fmt.Println("bookings:", len(books.known))
	fmt.Println("two at a time on one account:", books.overlaps.Load())
	return failed
}

// keys yields the key of each account. No list of them is made.
func keys(yield func(string) bool) {
	for i := range accounts {
		if !yield(fmt.Sprint("account:", i)) {
			return
		}
	}
}

// A process books once on each account.
type process struct {
	name  string
	locks *asynclock.Client
	books *ledger
}

// work has the workers serve accounts in the order in which their keys come.
func (p process) work(ctx context.Context, keys iter.Seq[string]) error {
	futures := p.locks.LockEach(ctx, keys)
	errs := make([]error, workers)
	var pool sync.WaitGroup
	for i := range workers {
		pool.Go(func() {
			for future := range futures { // until all were looked at; if ctx ends, the rest are errors
				errs[i] = errors.Join(errs[i], p.serve(ctx, future))
			}
		})
	}
	pool.Wait()
	return errors.Join(errs...)
}

// serve books on the account of a future.
func (p process) serve(ctx context.Context, future asynclock.Result) error {
	lease, err := future.Lease() // ours since we have received it
	for {
		if err == nil {
			err = p.books.book(lease.Context(), lease, p.name+" "+future.Key())
			lease.UnlockChan(ctx) // a loss is of no interest any more, if the fence has let us in
		}
		if !passes(err) {
			return err
		}
		lease, err = p.locks.Lock(ctx, future.Key()) // wait for our turn again
	}
}

// passes reports whether a repetition may help: we were late, or the store was silent.
func passes(err error) bool {
	return errors.Is(err, asynclock.ErrLost) || errors.Is(err, fence.ErrStale) || errors.Is(err, asynclock.ErrUnreachable)
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
