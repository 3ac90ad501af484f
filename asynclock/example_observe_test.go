// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

func ExampleClient_Observe() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		panic(err)
	}
	defer locks.Close(ctx)

	told := make(chan string, 10)
	stop, err := locks.Observe("config", asynclock.Observer{
		Announced: func(a asynclock.Announcement) {
			if a.Ended {
				told <- "the writer has left"
			} else {
				told <- "announced: " + string(a.Data)
			}
		},
		Look: func(live bool) { told <- fmt.Sprintf("look once (live: %t)", live) },
	})
	if err != nil {
		panic(err)
	}
	defer stop()

	lease, err := locks.Lock(ctx, "config")
	if err != nil {
		panic(err)
	}
	if err := lease.Announce(ctx, []byte("version 2"), time.Hour); err != nil {
		panic(err)
	}
	if err := lease.Unlock(ctx); err != nil {
		panic(err)
	}
	for range 3 {
		fmt.Println(<-told)
	}
	// Output:
	// look once (live: true)
	// announced: version 2
	// the writer has left
}
