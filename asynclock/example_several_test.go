// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A transfer needs both accounts, and another one may need them the other way round.
func ExampleClient_LockAll() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	accounts, err := locks.LockAll(ctx, []string{"account:7", "account:3"})
	if err != nil {
		log.Fatal(err) // nothing is held
	}
	defer accounts.Unlock(ctx)

	fmt.Println(accounts.Keys())
	fmt.Println("a token for each:", accounts.Token("account:3") > 0, accounts.Token("account:7") > 0)
	// Output:
	// [account:3 account:7]
	// a token for each: true true
}

// The context of the function ends with the first key that is lost.
func ExampleClient_WithLockAll() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	keys := []string{"account:7", "account:3"}
	err = locks.WithLockAll(ctx, keys, func(ctx context.Context, accounts *asynclock.MultiLease) error {
		if _, err := locks.ForceUnlock(ctx, "account:7", 0); err != nil {
			return err
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	var part *asynclock.PartError
	if errors.As(err, &part) {
		fmt.Println("lost:", part.Key)
	}
	// Output:
	// lost: account:7
}

// TryLockAll takes all keys or none. The error names one that is held.
func ExampleClient_TryLockAll() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	lease, err := locks.Lock(ctx, "account:7")
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Unlock(ctx)

	_, err = locks.TryLockAll(ctx, []string{"account:3", "account:7"})
	var held *asynclock.HeldError
	if errors.As(err, &held) {
		fmt.Println("held:", held.Key)
	}
	// Output:
	// held: account:7
}

// Several keys can be selected on, too.
func ExampleClient_LockAllChan() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel() // ends the waiting, not the lease
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(context.Background())

	shutdown := make(chan struct{})
	select {
	case got := <-locks.LockAllChan(ctx, []string{"account:7", "account:3"}):
		accounts, err := got.Lease() // ours since we have received them
		if err != nil {
			log.Print(err)
			return
		}
		defer accounts.Unlock(context.Background())
		fmt.Println(accounts.Keys())
	case <-shutdown:
	}
	// Output:
	// [account:3 account:7]
}

// A program without the watchdog renews all keys before a long step. An error says which key was not renewed.
func ExampleMultiLease_Renew() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	accounts, err := locks.LockAll(ctx, []string{"account:7", "account:3"}, asynclock.WithRenewal(false))
	if err != nil {
		log.Fatal(err)
	}
	defer accounts.Unlock(ctx)

	if err := accounts.Renew(ctx, time.Minute); err != nil {
		log.Print(err)
		return
	}
	fmt.Println("lasts for half a minute:", accounts.Valid(30*time.Second))
	// Output:
	// lasts for half a minute: true
}
