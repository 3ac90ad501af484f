// SPDX-License-Identifier: Apache-2.0

// Command test-your-code is a small program with a lock. payouts_test.go is what it shows: tests of such a program
// in virtual time, and on a network that fails as the test says.
//
// Use it for any code of yours that locks. A client for package memstore takes the place of the one for Redis. In a
// bubble of testing/synctest, hours pass at once. Package asynclocktest is the same store behind a bad network.
//
// If the lease is lost, the context ends the payouts. A process that goes on regardless is refused by the bank. The
// tests make both happen.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"time"

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

// run has one process pay, and another one try the same meanwhile.
func run(ctx context.Context, connect func() (*asynclock.Client, error)) error {
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
	// A Redis that was started lately grants nothing for a while. Lock waits for that, and WithWait(0) doesn't.
	if err := first.WithLock(ctx, "payouts", func(context.Context, *asynclock.Lease) error { return nil }); err != nil {
		return err
	}

	people := []string{"Ada", "Grace", "Edsger"}
	b := newMemoryBank()
	b.before = func(person string) error {
		if person != "Grace" {
			return nil
		}
		paid, err := (&payouts{second, b, 0}).run(ctx, people)
		fmt.Println("the second process pays:", paid)
		return err
	}
	paid, err := (&payouts{first, b, time.Millisecond}).run(ctx, people)
	fmt.Println("the first process pays:", paid)
	fmt.Println("payments:", b.payments)
	return err
}

// A memoryBank stands for a bank that keeps the token in its database.
type memoryBank struct {
	before   func(person string) error // what happens before a payment
	gate     fence.Gate
	paid     map[string]bool
	payments int
}

func newMemoryBank() *memoryBank {
	return &memoryBank{before: func(string) error { return nil }, paid: make(map[string]bool)}
}

// pay takes no notice of the context, as a request that is on its way.
func (b *memoryBank) pay(_ context.Context, lease fence.Holder, person string) error {
	if err := b.before(person); err != nil {
		return err
	}
	return b.gate.Do(context.Background(), lease, func() error {
		if !b.paid[person] {
			b.paid[person] = true
			b.payments++
		}
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
