// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/once"
)

// A job runs on one of many hosts.
func Example_once() {
	with(func(ctx context.Context, locks *asynclock.Client) error {
		ctx, stop := context.WithCancel(ctx)
		err := everyNight(ctx, locks, func(_ context.Context, _ time.Time, token int64) error {
			fmt.Println("reports with a token:", token > 0)
			stop()
			return nil
		})
		fmt.Println(err)
		return nil
	})
	// Output:
	// reports with a token: true
	// context canceled
}

func everyNight(ctx context.Context, locks *asynclock.Client, report func(context.Context, time.Time, int64) error) error {
	return once.Every(ctx, locks, "report", 24*time.Hour, func(ctx context.Context, run once.Run) error {
		return report(ctx, run.Start, run.Lease.Token())
	}, once.WithOffset(3*time.Hour)) // at 3:00 UTC
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

// Work goes on in another goroutine, which unlocks.
func Example_elsewhere() {
	with(func(ctx context.Context, locks *asynclock.Client) error {
		done := make(chan error)
		err := begin(ctx, locks, func(ctx context.Context) error {
			fmt.Println("transcodes")
			return ctx.Err()
		}, done)
		fmt.Println("began:", err)
		fmt.Println("unlocked:", <-done)
		return nil
	})
	// Unordered output:
	// began: <nil>
	// transcodes
	// unlocked: <nil>
}

func begin(ctx context.Context, locks *asynclock.Client, transcode func(context.Context) error, done chan<- error) error {
	lease, err := locks.Lock(ctx, "video:7")
	if err != nil {
		return err
	}
	go func() {
		err := transcode(lease.Context()) // ends with the lease, not with ctx
		done <- errors.Join(err, lease.Unlock(context.Background()))
	}()
	return nil
}
