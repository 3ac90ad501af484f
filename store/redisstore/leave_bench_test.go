// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"strconv"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// How long it takes to take a permit and to give it back beside 20,000 other holders.
func BenchmarkPermitBesideManyHolders(b *testing.B) {
	const holders = 20_000
	sv := onServer(b, redistest.Option(b, "ASYNCLOCK_REDIS_URL"))
	c := join(b, sv.newStore(b, WithoutFailoverGrace()))
	batch := make([]store.AcquireRequest, holders)
	for i := range batch {
		batch[i] = permits("key", "holder"+strconv.Itoa(i), 1, store.MaxPermits)
	}
	for i, reply := range c.session.Acquire(b.Context(), batch) {
		if reply.Status != store.Granted {
			b.Fatalf("holder %d: got %+v, want Granted", i, reply)
		}
	}
	for i := 0; b.Loop(); i++ {
		owner := strconv.Itoa(i)
		c.Want(permits("key", owner, 1, store.MaxPermits), store.Granted)
		c.release(store.ReleaseRequest{Key: "key", Owner: owner})
	}
}
