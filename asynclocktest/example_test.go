// SPDX-License-Identifier: Apache-2.0

package asynclocktest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

// A unit of work has to stop when its lease is lost. Here the store answers no
// renewal any more.
func Example() {
	store := asynclocktest.New()
	locks, err := asynclock.New(store, asynclock.WithTTL(asynclock.MinTTL))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close(context.Background())

	err = locks.WithLock(context.Background(), "payroll", func(ctx context.Context, _ *asynclock.Lease) error {
		store.Every(asynclocktest.Renew.On("payroll"), asynclocktest.Hang)
		<-ctx.Done() // the work would be done here
		return context.Cause(ctx)
	})
	fmt.Println("lost:", errors.Is(err, asynclock.ErrLost))
	// Output: lost: true
}

// A reply is lost after the lock was taken: the client asks again, and has the
// key that it holds already.
func ExampleStore_Next() {
	store := asynclocktest.New()
	locks, err := asynclock.New(store)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close(context.Background())

	store.Next(asynclocktest.Acquire.On("payroll"), asynclocktest.LoseReply)
	lease, err := locks.Lock(context.Background(), "payroll")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("requests:", len(store.Calls(asynclocktest.Acquire.On("payroll"))))
	fmt.Println("unlock:", lease.Unlock(context.Background()))
	// Output:
	// requests: 2
	// unlock: <nil>
}
