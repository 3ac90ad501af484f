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
