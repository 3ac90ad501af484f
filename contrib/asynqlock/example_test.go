// SPDX-License-Identifier: Apache-2.0

package asynqlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/hibiken/asynq"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/contrib/asynqlock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// One payment of an account at a time. The tasks are processed by hand here; asynq.NewServer takes the configuration.
func ExamplePerKey() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New()) // in production: redisstore
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)
	accountOf := func(task *asynq.Task) string {
		if task.Type() != "pay" {
			return "" // no lock
		}
		return "account:" + string(task.Payload())
	}
	locker, err := asynqlock.PerKey(locks, accountOf, 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	_ = locker.Configure(asynq.Config{Concurrency: 10})

	mux := asynq.NewServeMux()
	mux.Use(locker.Middleware)
	payment := asynq.NewTask("pay", []byte("acme"))
	mux.HandleFunc("pay", func(context.Context, *asynq.Task) error {
		fmt.Println("processes the first")
		second := mux.ProcessTask(ctx, payment)
		fmt.Println("the second is not begun:", errors.Is(second, asynqlock.ErrNotBegun))
		return nil
	})
	fmt.Println("the first:", mux.ProcessTask(ctx, payment))
	// Output:
	// processes the first
	// the second is not begun: true
	// the first: <nil>
}
