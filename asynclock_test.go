// SPDX-License-Identifier: Apache-2.0

// Package asynclockgo_test is the module seen from outside: what a user of locks could
// tell, on every store of this module. The stories are in internal/test/acceptance. Stores
// in SQL and in ZooKeeper have the same table in a file of the same kind, acceptance_test.go.
package asynclockgo_test

import (
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/acceptance"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
)

var stores = []acceptance.Store{
	acceptance.Memory,
	acceptance.Miniredis,
	acceptance.RedisAlone,
	acceptance.RedisSentinel,
	acceptance.RedisCluster,
	acceptance.RedisAloneByTLS,
	acceptance.RedisSentinelByTLS,
	acceptance.RedisClusterByTLS,
	acceptance.Quorum,
	acceptance.SpringRedis,
}

func TestStories(t *testing.T) { acceptance.Run(t, stores) }

func TestWhatIsClosedHasNoTimer(t *testing.T) { acceptance.WantNoTimers(t, stores) }

func TestMain(m *testing.M) { acceptance.Main(m, acceptance.OpenRedis, redistest.Leftover()...) }
