// SPDX-License-Identifier: Apache-2.0

package quorumstore_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/quorumstore"
	"github.com/asynclock/asynclock-go/store/redisstore"
	"github.com/asynclock/asynclock-go/store/storetest"
)

// TestConformanceOnRealServers has a server, a Sentinel set and a Cluster for nodes.
func TestConformanceOnRealServers(t *testing.T) {
	t.Parallel()
	prefix := "test-" + uuid.NewString()
	storetest.Run(t, func(t *testing.T) store.Store {
		var nodes []store.Store
		for _, variable := range []string{"ASYNCLOCK_REDIS_URL", "ASYNCLOCK_SENTINEL_URL", "ASYNCLOCK_CLUSTER_URL"} {
			node, err := redisstore.Open(redistest.Option(t, variable), redisstore.WithPrefix(prefix), redisstore.WithoutFailoverGrace(), redisstore.WithoutLogger())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(node.Close)
			nodes = append(nodes, node)
		}
		return quorumstore.Unhurried(over(t, nodes...))
	})
}
