// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A sessionStore promises less than it is asked for, as one whose server ends
// sessions does, and tells what becomes of them.
type sessionStore struct {
	*memstore.Store
	promise time.Duration
	renews  int
	tell    func(store.Event)
	owner   string
}

func (s *sessionStore) Open(id string, events func(store.Event)) (store.Session, error) {
	s.tell = events
	inner, err := s.Store.Open(id, events)
	return shortSession{inner, s}, err
}

type shortSession struct {
	store.Session
	store *sessionStore
}

func (c shortSession) Acquire(ctx context.Context, batch []store.AcquireRequest) []store.AcquireReply {
	c.store.owner = batch[0].Owner
	replies := c.Session.Acquire(ctx, batch)
	replies[0].TTL = c.store.promise
	return replies
}

func (c shortSession) Renew(ctx context.Context, batch []store.RenewRequest) []store.RenewReply {
	c.store.renews++
	replies := c.Session.Renew(ctx, batch)
	replies[0].TTL = c.store.promise
	return replies
}

func onSessions(t *testing.T, promise time.Duration, tell func(*testing.T, *sessionStore, *asynclock.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &sessionStore{Store: memstore.New(), promise: promise}
		c, err := asynclock.New(s)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(t.Context())
		tell(t, s, c)
	})
}

// The TTL that the store promises counts, not the TTL that was requested.
func TestAShorterPromiseBoundsTrust(t *testing.T) {
	onSessions(t, 3*time.Second, func(t *testing.T, _ *sessionStore, c *asynclock.Client) {
		start := time.Now()
		lease, err := c.Lock(t.Context(), "key", asynclock.WithRenewal(false))
		if err != nil {
			t.Fatal(err)
		}
		<-lease.Done()
		if got := time.Since(start); got > trusted(3*time.Second) {
			t.Errorf("the lease ended after %v, want it before %v", got, trusted(3*time.Second))
		}
		if err := lease.Unlock(t.Context()); !errors.Is(err, asynclock.ErrExpired) {
			t.Errorf("Unlock: got %v, want ErrExpired", err)
		}
	})
}

// Renewals come as often as the promise needs them, and each moves the trust
// deadline no further than it says.
func TestAShorterPromiseIsRenewedInTime(t *testing.T) {
	onSessions(t, 3*time.Second, func(t *testing.T, s *sessionStore, c *asynclock.Client) {
		lease, err := c.Lock(t.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		for range 30 {
			time.Sleep(time.Second)
			if got := time.Until(lease.Deadline()); lease.Err() != nil || got > trusted(3*time.Second) {
				t.Fatalf("lease: got %v and %v of trust, want it valid for at most %v", lease.Err(), got, trusted(3*time.Second))
			}
		}
		if s.renews < 25 || s.renews > 40 {
			t.Errorf("renewals in 30 s of a promise of 3 s: got %d, want one a second", s.renews)
		}
		lease.Unlock(t.Context())
	})
}

// A promise for longer than was asked gives nothing more.
func TestALongerPromiseGivesNoMore(t *testing.T) {
	onSessions(t, time.Hour, func(t *testing.T, _ *sessionStore, c *asynclock.Client) {
		lease, err := c.Lock(t.Context(), "key", asynclock.WithRenewal(false))
		if err != nil {
			t.Fatal(err)
		}
		if got := time.Until(lease.Deadline()); got > trusted(ttl) {
			t.Errorf("trust: got %v, want at most %v", got, trusted(ttl))
		}
		lease.Unlock(t.Context())
	})
}

// A store that knows of a loss before the next renewal says so, and why.
func TestALossThatTheStoreTells(t *testing.T) {
	for _, c := range []struct{ told, want error }{
		{fmt.Errorf("%w: the session was closed", asynclock.ErrExpired), asynclock.ErrExpired},
		{nil, asynclock.ErrExpired},
		{context.Canceled, asynclock.ErrExpired}, // no cause of a loss
		{asynclock.ErrStolen, asynclock.ErrStolen},
	} {
		onSessions(t, 0, func(t *testing.T, s *sessionStore, locks *asynclock.Client) {
			lease, err := locks.Lock(t.Context(), "key")
			if err != nil {
				t.Fatal(err)
			}
			s.tell(store.Event{Kind: store.EventLost, Owner: s.owner, Err: c.told})
			synctest.Wait()
			if got := lease.Err(); !errors.Is(got, c.want) {
				t.Errorf("told %v: got %v, want %v", c.told, got, c.want)
			}
			lease.Unlock(t.Context())
		})
	}
}
