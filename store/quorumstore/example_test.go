// SPDX-License-Identifier: Apache-2.0

package quorumstore_test

import (
	"context"
	"fmt"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
	"github.com/asynclock/asynclock-go/store/quorumstore"
)

// Three stores in memory stand for three Redis servers, each a store of package redisstore.
func ExampleNew() {
	ctx := context.Background()
	a, b, c := memstore.New(), memstore.New(), memstore.New()
	nodes, err := quorumstore.New(
		quorumstore.Node{Name: "redis-a", Store: a},
		quorumstore.Node{Name: "redis-b", Store: b},
		quorumstore.Node{Name: "redis-c", Store: c},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := asynclock.New(nodes)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(ctx)

	err = client.WithLock(ctx, "report", func(ctx context.Context, lease *asynclock.Lease) error {
		fmt.Println("a token for the fence:", lease.Token() > 0)
		return nil
	})
	fmt.Println("done:", err)
	// Output:
	// a token for the fence: true
	// done: <nil>
}
