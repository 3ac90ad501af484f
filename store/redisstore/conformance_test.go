// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/storetest"
)

func TestConformanceOnMiniredis(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Store {
		mini := miniredis.RunT(t)
		mini.ClockTTL(true)
		// It has no history to show, for which each bucket would look first.
		return onServer(t, rueidis.ClientOption{
			InitAddress: []string{mini.Addr()}, ForceSingleClient: true, ConnWriteTimeout: redistest.Unhurried,
		}).store(t, WithoutFailoverGrace())
	})
}

func TestConformanceOnRealServers(t *testing.T) {
	t.Parallel()
	for _, variable := range []string{"ASYNCLOCK_REDIS_URL", "ASYNCLOCK_SENTINEL_URL", "ASYNCLOCK_CLUSTER_URL"} {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			sv := onServer(t, redistest.Option(t, variable))
			sv.acquaint(t, long) // once, for all the tests share a prefix
			storetest.Run(t, func(t *testing.T) store.Store { return sv.newStore(t) })
		})
	}
}
