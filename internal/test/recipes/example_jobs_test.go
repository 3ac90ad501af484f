// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/elect"
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

// Very many keys are requested without goroutines, at the pace of the work.
func Example_futures() {
	with(func(ctx context.Context, locks *asynclock.Client) error {
		accounts := make([]string, 10_000)
		for i := range accounts {
			accounts[i] = fmt.Sprint("account:", i)
		}
		settled := 0
		err := settleAll(ctx, locks, accounts, func(ctx context.Context, _ string, _ int64) error {
			settled++
			return ctx.Err()
		})
		fmt.Println("settled:", settled)
		return err
	})
	// Output:
	// settled: 10000
}

func settleAll(ctx context.Context, locks *asynclock.Client, accounts []string, settle func(context.Context, string, int64) error) error {
	ctx, cancel := context.WithCancel(ctx) // an error ends what was requested in advance
	defer cancel()
	for result := range locks.LockEach(ctx, slices.Values(accounts)) { // from here on the lease is ours
		lease, err := result.Lease()
		if err != nil {
			return err
		}
		if err := errors.Join(settle(lease.Context(), result.Key(), lease.Token()), lease.Unlock(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// One of the candidates leads, and others see which.
func Example_leader() {
	with(func(ctx context.Context, locks *asynclock.Client) error {
		ctx, stop := context.WithCancel(ctx)
		candidate := make(chan error, 1)
		go func() {
			candidate <- campaign(ctx, locks, "10.0.0.7:8080", func(ctx context.Context, _ int64) error {
				<-ctx.Done()
				return nil
			})
		}()
		err := observe(ctx, locks, func(leads bool, address string) {
			if leads {
				fmt.Println("leads:", address)
				stop()
			}
		})
		fmt.Println(err, <-candidate)
		return nil
	})
	// Output:
	// leads: 10.0.0.7:8080
	// context canceled context canceled
}

func campaign(ctx context.Context, locks *asynclock.Client, address string, schedule func(context.Context, int64) error) error {
	return elect.Run(ctx, locks, "scheduler", func(ctx context.Context, term *elect.Term) error {
		return schedule(ctx, term.Token()) // until ctx ends
	}, elect.WithValue([]byte(address)))
}

func observe(ctx context.Context, locks *asynclock.Client, follow func(leads bool, address string)) error {
	leaders, err := elect.Observe(ctx, locks, "scheduler")
	if err != nil {
		return err
	}
	for leader := range leaders { // until ctx ends
		follow(leader.Token != 0, string(leader.Value)) // 0: nobody leads
	}
	return context.Cause(ctx)
}
