// SPDX-License-Identifier: Apache-2.0

package elect_test

import (
	"context"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/elect"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// One of several processes schedules. It says where it can be reached.
func ExampleRun() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close(ctx)

	err = elect.Run(ctx, locks, "scheduler", func(ctx context.Context, term *elect.Term) error {
		leader, err := elect.Current(ctx, locks, "scheduler") // as any process may ask
		if err != nil {
			return err
		}
		fmt.Printf("%s leads, term is ours: %v\n", leader.Value, leader.Token == term.Token())
		return elect.ErrResign // a program that goes on would wait for ctx
	}, elect.WithValue([]byte("10.0.0.7:8080")))
	fmt.Println(err)
	// Output:
	// 10.0.0.7:8080 leads, term is ours: true
	// <nil>
}

// A program that selects on several channels takes its terms from one of them.
func ExampleCampaign() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close(ctx)

	for elected := range elect.Campaign(ctx, locks, "scheduler") {
		term, err := elected.Term() // we lead since we have received it
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println("leads")
		stop() // stands for a signal
		if err := term.Resign(context.Background()); err != nil {
			fmt.Println(err)
		}
	}
	// Output: leads
}

// A scheduler as gocron asks an elector before each job whether this process leads.
func ExampleElector() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close(context.Background())

	var elector elect.Elector // gocron.WithDistributedElector(&elector)
	fmt.Println(elector.IsLeader(ctx))
	done := make(chan error, 1)
	go func() { done <- elect.Run(ctx, locks, "scheduler", elector.Lead) }()
	stop()
	fmt.Println(<-done)
	// Output:
	// elect: not the leader
	// context canceled
}

// An operator asks what an election came to in this process, with expvar or any other way to read numbers.
func ExampleWithStats() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close(ctx)

	var stats elect.Stats // expvar.Publish("scheduler", expvar.Func(func() any { return stats.Counts() }))
	err = elect.Run(ctx, locks, "scheduler", func(context.Context, *elect.Term) error {
		fmt.Println("leading:", stats.Counts().Leading)
		return elect.ErrResign
	}, elect.WithStats(&stats))
	if err != nil {
		fmt.Println(err)
	}
	c := stats.Counts()
	fmt.Println("terms:", c.Terms, "lost:", c.Lost, "leading:", c.Leading)
	// Output:
	// leading: 1
	// terms: 1 lost: 0 leading: 0
}

// A process that does not lead follows who does.
func ExampleObserve() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close(context.Background())

	leading, resign := context.WithCancel(context.Background())
	defer resign()
	resigned := make(chan error, 1)

	leaders, err := elect.Observe(ctx, locks, "scheduler", elect.WithInterval(100*time.Millisecond))
	if err != nil {
		fmt.Println(err)
		return
	}
	for leader := range leaders { // until ctx ends
		if leader.Token == 0 {
			fmt.Println("nobody leads")
			go func() { // stands for another process
				resigned <- elect.Run(leading, locks, "scheduler", func(ctx context.Context, _ *elect.Term) error {
					<-ctx.Done()
					return nil
				}, elect.WithValue([]byte("10.0.0.7:8080")))
			}()
			continue
		}
		fmt.Printf("%s leads\n", leader.Value)
		stop()
	}
	resign()
	fmt.Println(<-resigned)
	// Output:
	// nobody leads
	// 10.0.0.7:8080 leads
	// context canceled
}
