// SPDX-License-Identifier: Apache-2.0

// Command async-chain takes a lock, does the work in a chain of futures, each step on a goroutine of its own, and
// unlocks on the last one. In Java this is WebFlux, where locks that belong to a thread fail. A lease belongs to no
// goroutine: it travels with the values of the chain.
//
// Use it where one goroutine starts what another one ends: pipelines, callbacks, actors. Where one function can
// have all the work, WithLock is simpler.
//
// If the lease is lost, lease.Context ends, and the chain with it. The context of the request has no part in that:
// it bounds the wait for the key, not the work. A step that goes on regardless shows the token, and the shop
// refuses an older one than the last.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/store/memstore"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

func main() {
	url := flag.String("redis", "", "where the locks are, as redis://localhost:6379; without it: in this process")
	flag.Parse()
	if err := run(context.Background(), connector(*url)); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, connect func() (*asynclock.Client, error)) error {
	locks, err := connect()
	if err != nil {
		return err
	}
	defer locks.Close(ctx)
	s := &shop{locks: locks, stock: 10}

	// Both are under way at a time. One chain begins when the other has unlocked.
	one, two := s.order(ctx, 3), s.order(ctx, 4)
	for _, chain := range []future[int]{one, two} {
		if _, err := chain.await(); err != nil {
			return err
		}
	}
	fmt.Println("left:", s.stock)

	s.halfway = func(lease *asynclock.Lease) error { // an operator takes the key while a chain is under way
		_, err := locks.ForceUnlock(ctx, lease.Key(), lease.Token())
		<-lease.Done()
		return err
	}
	_, err = s.order(ctx, 2).await()
	fmt.Println("the third one lost its lease:", errors.Is(err, asynclock.ErrLost))
	fmt.Println("left:", s.stock)
	return nil
}

// A shop sells one product.
type shop struct {
	locks   *asynclock.Client
	gate    fence.Gate // in front of what stands for your database
	stock   int
	halfway func(*asynclock.Lease) error // what happens between two steps
}

// A sale is what the steps of a chain pass on.
type sale struct {
	lease *asynclock.Lease
	count int
	left  int
}

// order returns at once. The chain's result is how many are left.
func (s *shop) order(ctx context.Context, count int) future[int] {
	waiting := s.locks.LockChan(ctx, "product:7") // queued by now, and no goroutine waits
	taken := start(func() (*sale, error) {
		lease, err := (<-waiting).Lease() // ours since we have received it
		return &sale{lease: lease, count: count}, err
	})
	sold := then(then(then(taken, s.look), s.pause), s.sell)
	return finally(sold, taken)
}

func (s *shop) look(o *sale) (*sale, error) {
	err := s.gate.Do(o.lease.Context(), o.lease, func() error { o.left = s.stock - o.count; return nil })
	if err == nil && o.left < 0 {
		err = errors.New("sold out")
	}
	return o, err
}

func (s *shop) pause(o *sale) (*sale, error) {
	if s.halfway == nil {
		return o, nil
	}
	return o, s.halfway(o.lease)
}

// sell writes. The gate lets the lease in unless a later one has been there.
func (s *shop) sell(o *sale) (int, error) {
	ctx := o.lease.Context()
	if ctx.Err() != nil {
		return 0, context.Cause(ctx) // which spares the work; the gate makes it safe
	}
	return o.left, s.gate.Do(ctx, o.lease, func() error { s.stock = o.left; return nil })
}

// finally unlocks when the chain has ended, however it did. The error of Unlock counts: after a loss, nobody knows
// whether the work was done alone.
func finally(end future[int], taken future[*sale]) future[int] {
	return start(func() (int, error) {
		left, err := end.await()
		if o, none := taken.await(); none == nil {
			err = errors.Join(err, o.lease.Unlock(context.Background()))
		}
		return left, err
	})
}

// A future is the result of a function that runs on a goroutine of its own.
type future[T any] struct {
	done  <-chan struct{}
	value *T
	err   *error
}

func start[T any](f func() (T, error)) future[T] {
	done := make(chan struct{})
	r := future[T]{done, new(T), new(error)}
	go func() { // ends with f
		defer close(done)
		*r.value, *r.err = f()
	}()
	return r
}

// then runs f with the value of a future, unless that has failed.
func then[A, B any](a future[A], f func(A) (B, error)) future[B] {
	return start(func() (b B, err error) {
		value, err := a.await()
		if err != nil {
			return b, err
		}
		return f(value)
	})
}

func (f future[T]) await() (T, error) {
	<-f.done
	return *f.value, *f.err
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
