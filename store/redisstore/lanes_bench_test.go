// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"fmt"
	"testing"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
)

// BenchmarkLockAllInACluster takes and gives back 256 keys that nobody else wants, of nearly as many lanes.
func BenchmarkLockAllInACluster(b *testing.B) {
	sv := onServer(b, redistest.Option(b, "ASYNCLOCK_CLUSTER_URL"))
	c, err := asynclock.New(sv.store(b))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close(context.Background()) })
	keys := make([]string, 256)
	for i := range keys {
		keys[i] = fmt.Sprint("key ", i)
	}
	b.ReportAllocs()
	for b.Loop() {
		m, err := c.LockAll(b.Context(), keys)
		if err != nil {
			b.Fatal(err)
		}
		if err := m.Unlock(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
