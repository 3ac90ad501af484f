// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"testing"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore"
	"github.com/asynclock/asynclock-go/store/storetest"
)

// variables say where servers are, of each topology.
var variables = []string{"ASYNCLOCK_REDIS_URL", "ASYNCLOCK_SENTINEL_URL", "ASYNCLOCK_CLUSTER_URL"}

// clientAt returns a client that New accepts, and that ends with the test.
func clientAt(t testing.TB, variable string) redis.UniversalClient {
	t.Helper()
	client := redis.NewUniversalClient(universal(redistest.Option(t, variable)))
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

// newStore opens a store on a client. Its servers have just started.
func newStore(t testing.TB, client redis.UniversalClient, opts ...redisstore.Option) *redisstore.Store {
	t.Helper()
	st, err := New(client, append([]redisstore.Option{redisstore.WithoutFailoverGrace(), redisstore.WithoutLogger()}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	return st
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, variable := range variables {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			kit.Require(t, variable)
			client, prefix := clientAt(t, variable), redisstore.WithPrefix("test-"+uuid.NewString())
			storetest.Run(t, func(t *testing.T) store.Store { return newStore(t, client, prefix) })
		})
	}
}
