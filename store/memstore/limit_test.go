// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"errors"
	"testing"

	"github.com/asynclock/asynclock-go/store"
)

func setLimit(t *testing.T, c store.Session, key string, limit int32) {
	t.Helper()
	if err := c.(store.LimitSession).SetLimit(t.Context(), key, limit); err != nil {
		t.Fatalf("SetLimit(%d): got %v, want no error", limit, err)
	}
}

func acquirePermits(t *testing.T, c store.Session, owner string, weight int32) store.AcquireReply {
	t.Helper()
	return c.Acquire(t.Context(), []store.AcquireRequest{{
		Key: "key", Owner: owner, TTL: ttl, GrantTTL: ttl, WaiterTTL: ttl, Wait: true,
		Share: store.Share{Mode: store.Permits, Weight: weight, Limit: 5},
	}})[0]
}

func TestLimitTakesMemoryUntilItIsForgotten(t *testing.T) {
	t.Parallel()
	s := New()
	c := join(t, s, nil)
	setLimit(t, c, "key", 2)
	for range 10 { // each call sweeps
		release(t, c, store.ReleaseRequest{Key: "other", Owner: "nobody"})
	}
	wantKeys(t, s, 1)
	setLimit(t, c, "key", 0)
	setLimit(t, c, "another", 0)
	wantKeys(t, s, 0)
}

// A waiter may change its weight while it waits. If the new one is above the limit, it blocks nobody
// any more.
func TestRefusedWaiterServesThoseBehind(t *testing.T) {
	t.Parallel()
	var granted []string
	c := join(t, New(), func(e store.Event) { granted = append(granted, e.Owner) })
	setLimit(t, c, "key", 3)
	acquirePermits(t, c, "holder", 2)
	acquirePermits(t, c, "first", 2)
	acquirePermits(t, c, "second", 1)
	if got := acquirePermits(t, c, "first", 4).Status; got != store.TooMuch {
		t.Errorf("request for 4 permits of 3: got status %d, want TooMuch", got)
	}
	if len(granted) != 1 || granted[0] != "second" {
		t.Errorf("events: got %q, want the grant of the second", granted)
	}
}

func TestLimitIsChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		has   store.Features
		limit int32
		want  error
	}{
		{store.Features{Limits: true}, 0, nil},
		{store.Features{Limits: true}, 1, nil},
		{store.Features{Limits: true}, store.MaxPermits, nil},
		{store.Features{Limits: true}, store.MaxPermits + 1, store.ErrInvalidOption},
		{store.Features{Limits: true}, -1, store.ErrInvalidOption},
		{store.Features{Permits: true}, 1, store.ErrUnsupported},
	} {
		if err := c.has.CheckLimit(c.limit); !errors.Is(err, c.want) {
			t.Errorf("CheckLimit(%d) of %+v: got %v, want %v", c.limit, c.has, err, c.want)
		}
	}
}
