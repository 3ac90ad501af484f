// SPDX-License-Identifier: Apache-2.0

package quorumstore_test

import (
	"context"
	"fmt"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
	"github.com/asynclock/asynclock-go/store/quorumstore"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

// The process starts while one of the servers is down, and uses it when it is up.
func ExampleNew_redis() {
	var nodes []quorumstore.Node
	for _, host := range []string{"redis-a", "redis-b", "redis-c"} {
		server, err := redisstore.OpenURL("redis://"+host+":6379", redisstore.WithLazyDial())
		if err != nil {
			fmt.Println(err)
			return
		}
		defer server.Close()
		nodes = append(nodes, quorumstore.Node{Name: host, Store: server})
	}
	locks, err := quorumstore.New(nodes...)
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := asynclock.New(locks)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(context.Background())
}

// Three stores in memory stand for three Redis servers.
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
