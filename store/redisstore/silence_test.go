// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// Messages that a sharded inbox has missed concern the keys of its bucket only.
func TestSilenceOfAShardedInboxIsItsBuckets(t *testing.T) {
	t.Parallel()
	sv := onServer(t, redistest.Option(t, "ASYNCLOCK_CLUSTER_URL"))
	if !sv.has(t, "SSUBSCRIBE") {
		t.Skip("this server has no sharded pub-sub, which came with Redis 7")
	}
	heard := make(chan store.Event, 64)
	s, err := sv.store(t).Open("client-"+uuid.NewString(), func(e store.Event) { heard <- e })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(context.Background()) }()
	if got := s.Acquire(context.Background(), []store.AcquireRequest{{Key: "key", Owner: "owner", TTL: time.Second}})[0]; got.Err != nil {
		t.Fatal(got.Err)
	}
	select {
	case e := <-heard:
		if !e.OneLane || e.Lane != s.Lane("key") {
			t.Errorf("got %+v, want it to be about lane %d", e, s.Lane("key"))
		}
	case <-time.After(time.Minute):
		t.Error("got no event, want one when the inbox is up")
	}
}
