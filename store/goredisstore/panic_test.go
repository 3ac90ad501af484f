// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// A function of the application that panics does so on a goroutine of ours, where nobody else could recover it.
func TestAPanicOfTheApplicationIsAnError(t *testing.T) {
	t.Parallel()
	onConnect := func(context.Context, *redis.Conn) error {
		panic(errors.New("MOVED 1 127.0.0.1:1")) // which says nothing of the call
	}
	_, single := startWith(t, func(o *redis.Options) { o.OnConnect = onConnect })
	options := universal(redistest.Option(t, "ASYNCLOCK_CLUSTER_URL")).Cluster()
	var known atomic.Bool // a node that is asked for the topology
	options.OnConnect = func(ctx context.Context, c *redis.Conn) error {
		if !known.Swap(true) {
			return nil
		}
		return onConnect(ctx, c)
	}
	cluster := redis.NewClusterClient(options)
	defer cluster.Close()
	for _, client := range []redis.UniversalClient{single, cluster} {
		c := redistest.Join(t, newStore(t, client), store.EventResync, store.EventDisconnected)
		var got error
		for i := 0; got == nil && i < 64; i++ { // some of them on another node
			got = c.Acquire(redistest.Attempt(fmt.Sprint("key", i), "o")).Err
		}
		if !errors.Is(got, store.ErrOutcomeUnknown) || !strings.Contains(fmt.Sprint(got), "TestAPanicOfTheApplicationIsAnError") {
			t.Errorf("%T: got %v, want ErrOutcomeUnknown, and where the panic was", client, got)
		}
	}
}
