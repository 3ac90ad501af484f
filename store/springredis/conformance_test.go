// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/storetest"
)

var lockTypes = []LockType{SpinLock, PubSubLock}

func TestConformanceOnMiniredis(t *testing.T) {
	for _, mode := range lockTypes {
		t.Run(mode.String(), func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) asynclock.Store {
				mini := miniredis.RunT(t)
				mini.ClockTTL(true)
				sv := onServer(t, rueidis.ClientOption{InitAddress: []string{mini.Addr()}, ForceSingleClient: true})
				return sv.store(t, WithLockType(mode))
			})
		})
	}
}

func TestConformanceOnRealServers(t *testing.T) {
	for _, variable := range []string{"ASYNCLOCK_REDIS_URL", "ASYNCLOCK_SENTINEL_URL", "ASYNCLOCK_CLUSTER_URL"} {
		for _, mode := range lockTypes {
			t.Run(variable+"/"+mode.String(), func(t *testing.T) {
				option := serverOption(t, variable)
				storetest.Run(t, func(t *testing.T) asynclock.Store { return onServer(t, option).store(t, WithLockType(mode)) })
			})
		}
	}
}
