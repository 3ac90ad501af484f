// SPDX-License-Identifier: Apache-2.0

package quorumstore

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A program may lose leases and never unlock them.
func TestLostLeasesAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, err := New(Node{"a", memstore.New()}, Node{"b", memstore.New()}, Node{"c", memstore.New()})
		if err != nil {
			t.Fatal(err)
		}
		opened, err := q.Open("client", func(store.Event) {})
		if err != nil {
			t.Fatal(err)
		}
		ctx, s := context.Background(), opened.(*session)
		defer s.Close(ctx)
		acquire := func(key, owner string) {
			s.Acquire(ctx, []store.AcquireRequest{{Key: key, Owner: owner, TTL: time.Second, GrantTTL: time.Second, WaiterTTL: time.Second}})
		}
		for i := range 100 {
			acquire(fmt.Sprint(i), fmt.Sprint("lost ", i))
		}
		time.Sleep(time.Hour)
		for i := range 400 {
			owner := fmt.Sprint("unlocked ", i)
			acquire("key", owner)
			s.Release(ctx, []store.ReleaseRequest{{Key: "key", Owner: owner}})
		}
		time.Sleep(time.Hour)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.claims) > 10 || len(s.votes) > 30 {
			t.Errorf("got %d claims and %d votes, want a few", len(s.claims), len(s.votes))
		}
	})
}
