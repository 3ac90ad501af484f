// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A note stays when the lease has ended, and says what its holder has left.
func ExampleLease_SetNote() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close(ctx)

	err = locks.WithLock(ctx, "import", func(ctx context.Context, lease *asynclock.Lease) error {
		return lease.SetNote(ctx, []byte("up to row 4711"), 24*time.Hour)
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	note, err := locks.Note(ctx, "import")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s, held: %v\n", note.Data, note.Held)
	// Output: up to row 4711, held: false
}

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
