// SPDX-License-Identifier: Apache-2.0

package gocronlock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/contrib/gocronlock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// Two hosts have the same job, and one of them runs it. In production each has a client of its own.
func Example() {
	locks, err := asynclock.New(memstore.New()) // in production: redisstore
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(context.Background())
	locker, err := gocronlock.New(locks, "billing:", asynclock.WithMinHold(54*time.Second)) // of a minute
	if err != nil {
		log.Fatal(err)
	}

	ran := make(chan string, 2)
	for range 2 { // hosts
		scheduler, err := gocron.NewScheduler()
		if err != nil {
			log.Fatal(err)
		}
		defer func() { _ = scheduler.Shutdown() }()
		report := func(ctx context.Context, lease *asynclock.Lease) error {
			ran <- lease.Key() // write with lease.Token(), and stop when ctx ends
			return nil
		}
		task, options, err := locker.Task("report", report)
		if err != nil {
			log.Fatal(err)
		}
		options = append(options, gocron.WithStartAt(gocron.WithStartImmediately()))
		if _, err := scheduler.NewJob(gocron.DurationJob(time.Minute), task, options...); err != nil {
			log.Fatal(err)
		}
		scheduler.Start()
	}

	fmt.Println(<-ran)
	// Output: billing:report
}
