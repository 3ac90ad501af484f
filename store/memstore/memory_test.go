// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

const ttl = 10 * time.Second

func join(t *testing.T, s *Store, events func(store.Event)) store.Session {
	t.Helper()
	if events == nil {
		events = func(store.Event) {}
	}
	c, err := s.Open("a client", events)
	if err != nil {
		t.Fatalf("Open: got %v, want a session", err)
	}
	return c
}

func acquire(t *testing.T, c store.Session, key, owner string) store.AcquireReply {
	t.Helper()
	return c.Acquire(t.Context(), []store.AcquireRequest{{
		Key: key, Owner: owner, TTL: ttl, GrantTTL: ttl, WaiterTTL: ttl, Wait: true,
	}})[0]
}

func release(t *testing.T, c store.Session, r store.ReleaseRequest) store.ReleaseReply {
	t.Helper()
	return c.Release(t.Context(), []store.ReleaseRequest{r})[0]
}

func wantKeys(t *testing.T, s *Store, want int) {
	t.Helper()
	if len(s.locks) != want || len(s.swept) != want {
		t.Errorf("keys remembered: got %d by name and %d to sweep, want %d both", len(s.locks), len(s.swept), want)
	}
}

func TestKeyThatIsNotInUseTakesNoMemory(t *testing.T) {
	t.Parallel()
	s := New()
	c := join(t, s, nil)
	acquire(t, c, "key", "holder")
	acquire(t, c, "key", "waiter")
	wantKeys(t, s, 1)
	release(t, c, store.ReleaseRequest{Key: "key", Owner: "waiter"})
	release(t, c, store.ReleaseRequest{Key: "key", Owner: "holder"})
	wantKeys(t, s, 0)

	// Nor do calls that find nothing.
	release(t, c, store.ReleaseRequest{Key: "key", Owner: "nobody", Uncertain: true})
	c.Renew(t.Context(), []store.RenewRequest{{Key: "key", Owner: "nobody", TTL: ttl}})
	if _, err := c.Inspect(t.Context(), "key"); err != nil {
		t.Errorf("Inspect: got %v, want no error", err)
	}
	if _, err := c.Force(t.Context(), "key", 0); err != nil {
		t.Errorf("Force: got %v, want no error", err)
	}
	wantKeys(t, s, 0)
}

func TestKeysLeftToExpireAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New()
		c := join(t, s, nil)
		const keys = 1000
		for i := range keys {
			acquire(t, c, fmt.Sprint("abandoned ", i), "holder")
			acquire(t, c, fmt.Sprint("abandoned ", i), "waiter")
		}
		wantKeys(t, s, keys)
		time.Sleep(ttl)
		// No call names these keys again; any call does its share.
		for range keys/sweepPerCall + 1 {
			acquire(t, c, "used", "holder")
		}
		wantKeys(t, s, 1)
	})
}

func TestSweepKeepsWhatIsInUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New()
		c := join(t, s, nil)
		acquire(t, c, "held", "holder")
		time.Sleep(ttl / 2)
		acquire(t, c, "waited for", "holder")
		acquire(t, c, "waited for", "waiter")
		time.Sleep(ttl/2 - time.Nanosecond)
		for range 10 {
			release(t, c, store.ReleaseRequest{Key: "other", Owner: "nobody"})
		}
		wantKeys(t, s, 2)
		time.Sleep(time.Nanosecond)
		for range 10 {
			release(t, c, store.ReleaseRequest{Key: "other", Owner: "nobody"})
		}
		wantKeys(t, s, 1)
	})
}

func TestUncertainWithdrawalOfWhatIsFoundIsRememberedToo(t *testing.T) {
	t.Parallel()
	s := New()
	c := join(t, s, nil)
	// The holder's first request is still under way; this is its second one.
	acquire(t, c, "key", "holder")
	release(t, c, store.ReleaseRequest{Key: "key", Owner: "holder", Uncertain: true})
	if got := acquire(t, c, "key", "holder").Status; got != store.Withdrawn {
		t.Errorf("the first request, late: got status %d, want Gone", got)
	}
}

func TestForgettingAKeyForgetsNoToken(t *testing.T) {
	t.Parallel()
	s := New()
	c := join(t, s, nil)
	first := acquire(t, c, "key", "1").Grant
	release(t, c, store.ReleaseRequest{Key: "key", Owner: "1"})
	wantKeys(t, s, 0)
	if second := acquire(t, c, "key", "2").Grant; second.Token <= first.Token+first.Reserved {
		t.Errorf("token: got %d, want more than %d", second.Token, first.Token+first.Reserved)
	}
}

func TestNoTokenOverflows(t *testing.T) {
	t.Parallel()
	s := New()
	c := join(t, s, nil)
	acquire(t, c, "key", "1")
	release(t, c, store.ReleaseRequest{Key: "key", Owner: "1", Token: math.MaxInt64})
	if got := acquire(t, c, "key", "2").Grant; got.Token <= 0 || got.Token+got.Reserved <= 0 {
		t.Errorf("grant after a senseless token: got %+v, want positive numbers", got)
	}
}

func TestKeyKeptBackHasNoHolder(t *testing.T) {
	t.Parallel()
	s := New()
	c := join(t, s, func(e store.Event) { t.Errorf("got %+v, want no event", e) })
	acquire(t, c, "key", "1")
	release(t, c, store.ReleaseRequest{Key: "key", Owner: "1", HoldBack: ttl})
	if got := c.Renew(t.Context(), []store.RenewRequest{{Key: "key", Owner: "1", TTL: ttl}})[0].Err; !errors.Is(got, store.ErrExpired) {
		t.Errorf("Renew: got %v, want ErrExpired", got)
	}
	try := store.AcquireRequest{Key: "key", Owner: "", TTL: ttl}
	if got := c.Acquire(t.Context(), []store.AcquireRequest{try})[0].Status; got != store.Held {
		t.Errorf("Acquire by an empty owner: got status %d, want Held", got)
	}
	if held, err := c.Force(t.Context(), "key", 0); !held || err != nil {
		t.Errorf("Force: got %v, %v; want true, as it can be had now", held, err)
	}
	if got := acquire(t, c, "key", "2").Status; got != store.Granted {
		t.Errorf("Acquire after Force: got status %d, want Granted", got)
	}
}

func TestListLeavesOutWhatEndsMeanwhile(t *testing.T) {
	t.Parallel()
	s := New()
	c := join(t, s, nil)
	acquire(t, c, "1", "holder")
	acquire(t, c, "2", "holder")
	n := 0
	for info, err := range c.List(t.Context(), "") {
		if err != nil {
			t.Errorf("List: got %v, want no error", err)
		}
		n++
		other := map[string]string{"1": "2", "2": "1"}[info.Key]
		release(t, c, store.ReleaseRequest{Key: other, Owner: "holder"})
	}
	if n != 1 {
		t.Errorf("List with the other key released meanwhile: got %d keys, want 1", n)
	}
}
