// SPDX-License-Identifier: Apache-2.0

package once_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/once"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// Two processes call Do on the same day. One of them sends the report.
func ExampleDo() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close(ctx)

	for range 2 {
		outcome, err := once.Do(ctx, locks, "report", once.MaxInterval, func(ctx context.Context, run once.Run) error {
			fmt.Println("sending, attempt", run.Attempt) // with run.Lease.Token()
			return nil
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("ran:", outcome.Ran)
	}
	// Output:
	// sending, attempt 1
	// ran: true
	// ran: false
}

// A program runs a job every hour, in one of its processes, until it is told to stop.
func ExampleEvery() {
	ctx, stop := context.WithCancel(context.Background()) // as signal.NotifyContext
	defer stop()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close(context.Background())

	err = once.Every(ctx, locks, "cleanup", time.Hour, func(ctx context.Context, run once.Run) error {
		fmt.Println("cleaning up")
		stop()
		return nil
	}, once.WithOffset(10*time.Minute))
	fmt.Println(err)
	// Output:
	// cleaning up
	// context canceled
}

// An operator asks what the calls of this process came to, with expvar or any other way to read numbers.
func ExampleWithStats() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close(ctx)

	var stats once.Stats // expvar.Publish("report", expvar.Func(func() any { return stats.Counts() }))
	for range 3 {
		_, err := once.Do(ctx, locks, "report", once.MaxInterval, func(context.Context, once.Run) error {
			return errors.New("no paper")
		}, once.WithStats(&stats))
		if err != nil {
			fmt.Println(err)
		}
	}
	c := stats.Counts()
	fmt.Println("runs:", c.Runs, "failed:", c.Failed, "skipped:", c.Skipped)
	// Output:
	// no paper
	// runs: 1 failed: 1 skipped: 2
}

// An operator asks when a job ran last.
func ExampleLastRun() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close(ctx)

	last, err := once.LastRun(ctx, locks, "report")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("never ran:", last.Start.IsZero())
	// Output: never ran: true
}
