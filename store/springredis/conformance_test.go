// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/storetest"
)

var lockTypes = []LockType{SpinLock, PubSubLock}

func TestConformanceOnMiniredis(t *testing.T) {
	t.Parallel()
	for _, mode := range lockTypes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T) store.Store {
				mini := miniredis.RunT(t)
				mini.ClockTTL(true)
				sv := onServer(t, rueidis.ClientOption{InitAddress: []string{mini.Addr()}, ForceSingleClient: true, ConnWriteTimeout: redistest.Unhurried})
				return sv.store(t, WithLockType(mode))
			})
		})
	}
}

func TestConformanceOnRealServers(t *testing.T) {
	t.Parallel()
	for _, on := range []struct {
		variable string
		modes    []LockType
	}{
		{"ASYNCLOCK_REDIS_URL", lockTypes},
		// Where commands go is the same in both; where messages go is not.
		{"ASYNCLOCK_SENTINEL_URL", lockTypes[1:]},
		{"ASYNCLOCK_CLUSTER_URL", lockTypes[1:]},
	} {
		for _, mode := range on.modes {
			t.Run(on.variable+"/"+mode.String(), func(t *testing.T) {
				t.Parallel()
				option := redistest.Option(t, on.variable)
				storetest.Run(t, func(t *testing.T) store.Store { return onServer(t, option).store(t, WithLockType(mode)) })
			})
		}
	}
}
