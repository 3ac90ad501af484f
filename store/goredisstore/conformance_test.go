// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

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
	return clientOf(t, universal(redistest.Option(t, variable)))
}

func clientOf(t testing.TB, options *redis.UniversalOptions) redis.UniversalClient {
	t.Helper()
	client := redis.NewUniversalClient(options)
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

// The servers are younger than the leases that they might have forgotten, so they are told that they
// have forgotten none: see redistest.Acquaint.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, variable := range variables {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			conform(t, variable, universal(redistest.Option(t, variable)))
		})
	}
	t.Run("RESP2", func(t *testing.T) {
		t.Parallel()
		options := universal(redistest.Option(t, variables[0]))
		options.Protocol = 2
		conform(t, variables[0], options)
	})
}

func conform(t *testing.T, variable string, options *redis.UniversalOptions) {
	t.Helper()
	client, prefix := clientOf(t, options), "test-"+uuid.NewString()
	redistest.OnServer(t, redistest.Option(t, variable)).Acquaint(t, prefix, time.Hour)
	storetest.Run(t, func(t *testing.T) store.Store {
		return newStore(t, client, redisstore.WithPrefix(prefix), redisstore.WithFailoverGrace(redisstore.DefaultFailoverGrace))
	})
}
