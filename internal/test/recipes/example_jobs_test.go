// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynclock/asynclock-go/asynclock"
)

// A caller that comes while another is at work has nothing to do.
func Example_skip() {
	with(func(ctx context.Context, locks *asynclock.Client) error {
		return skipping(ctx, locks, func(ctx context.Context, token int64) error {
			fmt.Println("refreshes with a token:", token > 0)
			other := context.Background() // not the lease's: that of another request
			fmt.Println("meanwhile:", skipping(other, locks, func(context.Context, int64) error { return errors.New("called") }))
			return ctx.Err()
		})
	})
	// Output:
	// refreshes with a token: true
	// meanwhile: <nil>
}

func skipping(ctx context.Context, locks *asynclock.Client, refresh func(context.Context, int64) error) error {
	err := locks.WithLock(ctx, "prices", func(ctx context.Context, lease *asynclock.Lease) error {
		return refresh(ctx, lease.Token())
	}, asynclock.WithWait(0))
	if errors.Is(err, asynclock.ErrHeld) {
		return nil // another is at it
	}
	return err
}

type message struct {
	account, text string
	later         func() // gives the message back to its queue
}

// One worker at a time serves an account.
func Example_queue() {
	with(func(ctx context.Context, locks *asynclock.Client) error {
		other, err := locks.Lock(ctx, "account:3")
		if err != nil {
			return err
		}
		later := func() { fmt.Println("given back") }
		messages := make(chan message, 2)
		messages <- message{"3", "pay", later}
		messages <- message{"7", "pay", later}
		close(messages)
		worker(ctx, locks, messages, func(_ context.Context, m message, token int64) error {
			fmt.Println("account", m.account, m.text, token > 0)
			return nil
		})
		return other.Unlock(ctx)
	})
	// Output:
	// given back
	// account 7 pay true
}

func worker(ctx context.Context, locks *asynclock.Client, messages <-chan message, handle func(context.Context, message, int64) error) {
	for m := range messages {
		err := locks.WithLock(ctx, "account:"+m.account, func(ctx context.Context, lease *asynclock.Lease) error {
			return handle(ctx, m, lease.Token())
		}, asynclock.WithWait(0))
		if errors.Is(err, asynclock.ErrHeld) {
			m.later() // another worker has the account: serve another account meanwhile
		} else if err != nil {
			fmt.Println(err)
			m.later()
		}
	}
}
