// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// WithLock returns the error of its function, or that of the lock. They can be told apart.
func ExampleClient_WithLock_errors() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New(), asynclock.WithoutLogger())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)
	errSoldOut := errors.New("sold out")

	save := func(fn func(context.Context, *asynclock.Lease) error) {
		err := locks.WithLock(ctx, "order:42", fn, asynclock.WithWait(0))
		switch {
		case errors.Is(err, asynclock.ErrLost): // first, because it may come together with the function's
			fmt.Println("lost at work; the function's error, too:", errors.Is(err, errSoldOut))
		case errors.Is(err, errSoldOut):
			fmt.Println("of the function, as it is:", err == errSoldOut) //nolint:errorlint // that is the point
		case errors.Is(err, asynclock.ErrHeld):
			fmt.Println("not called: another has the key")
		default:
			fmt.Println(err)
		}
	}
	soldOut := func(context.Context, *asynclock.Lease) error { return errSoldOut }

	save(soldOut)
	save(func(ctx context.Context, lease *asynclock.Lease) error {
		if _, err := locks.ForceUnlock(ctx, "order:42", lease.Token()); err != nil { // by an operator
			return err
		}
		<-ctx.Done()
		return errSoldOut
	})
	lease, err := locks.Lock(ctx, "order:42")
	if err != nil {
		log.Fatal(err)
	}
	save(soldOut)
	if err := lease.Unlock(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// of the function, as it is: true
	// lost at work; the function's error, too: true
	// not called: another has the key
}
