// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"context"
	"fmt"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// Two clients of one store exclude each other, as two processes would.
func Example() {
	ctx := context.Background()
	store := memstore.New()
	ours, err := asynclock.New(store)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ours.Close(ctx)
	theirs, err := asynclock.New(store)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer theirs.Close(ctx)

	first, err := ours.Lock(ctx, "report")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = theirs.TryLock(ctx, "report", asynclock.WithDescription("example"))
	fmt.Println("while held:", err != nil)

	pending := theirs.LockChan(ctx, "report")
	if err := first.Unlock(ctx); err != nil {
		fmt.Println(err)
		return
	}
	second, err := (<-pending).Lease()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("token rises:", second.Token() > first.Token())
	fmt.Println("unlocked:", second.Unlock(ctx) == nil)
	// Output:
	// while held: true
	// token rises: true
	// unlocked: true
}
