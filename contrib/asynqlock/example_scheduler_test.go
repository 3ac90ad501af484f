// SPDX-License-Identifier: Apache-2.0

package asynqlock_test

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/hibiken/asynq"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// If each host ran a Scheduler, each task would be in the queue once for each host. This one runs on one host, until
// the program stops or the lease is lost, and on another one then. The example needs a Redis and is not run.
func Example_scheduler() {
	ctx := context.Background()                 // of the program
	locks, err := asynclock.New(memstore.New()) // in production: redisstore
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	schedule := func(ctx context.Context, _ *asynclock.Lease) error {
		scheduler := asynq.NewScheduler(asynq.RedisClientOpt{Addr: "127.0.0.1:6379"}, nil) // it can't be started twice
		if _, err := scheduler.Register("@every 1m", asynq.NewTask("report", nil)); err != nil {
			return err
		}
		if err := scheduler.Start(); err != nil {
			return err
		}
		<-ctx.Done()
		scheduler.Shutdown()
		return context.Cause(ctx)
	}
	for ctx.Err() == nil {
		err := locks.WithLock(ctx, "scheduler", schedule)
		if !errors.Is(err, asynclock.ErrLost) {
			time.Sleep(time.Second) // the store or the queue is in trouble
		}
		log.Print(err)
	}
}
