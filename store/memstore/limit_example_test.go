// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// An operator changes how many permits a key has while programs run.
func Example_limits() {
	ctx := context.Background()
	session, err := memstore.New().Open("a client", func(store.Event) {})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = session.Close(ctx) }() // it waits for nothing
	limits, ok := session.(store.LimitSession)
	if !ok {
		fmt.Println("this store has no limits")
		return
	}
	for _, limit := range []int32{1, 3} {
		if err := limits.SetLimit(ctx, "reports", limit); err != nil {
			fmt.Println(err)
			return
		}
		reply := session.Acquire(ctx, []store.AcquireRequest{{
			Key: "reports", Owner: fmt.Sprint("owner-", limit), TTL: time.Minute,
			Share: store.Share{Mode: store.Permits, Weight: 2, Limit: 5},
		}})[0]
		fmt.Println(reply.Status == store.TooMuch, reply.Status == store.Granted, reply.Limit)
	}
	// Output:
	// true false 1
	// false true 3
}
