// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"errors"
	"testing"

	"github.com/asynclock/asynclock-go/store"
)

func TestEventsComeBeforeTheReplyAndWithoutTheMutex(t *testing.T) {
	t.Parallel()
	s := New()
	var c store.Session
	var got []store.EventKind
	c = join(t, s, func(e store.Event) {
		got = append(got, e.Kind)
		// A receiver must not block, but if the mutex were held this would.
		if _, err := c.Inspect(t.Context(), "key"); err != nil {
			t.Errorf("Inspect: got %v, want no error", err)
		}
	})
	acquire(t, c, "key", "1")
	acquire(t, c, "key", "2")
	release(t, c, store.ReleaseRequest{Key: "key", Owner: "1"})
	if len(got) != 1 || got[0] != store.EventGrant {
		t.Errorf("events when Release has returned: got %v, want one EventGrant", got)
	}
	if _, err := c.Force(t.Context(), "key", 0); err != nil {
		t.Errorf("Force: got %v, want no error", err)
	}
	if len(got) != 2 || got[1] != store.EventForced {
		t.Errorf("events when Force has returned: got %v, want an EventForced more", got)
	}
}

func TestContentionIsToldOnceAndOnlyToThoseWhoAsked(t *testing.T) {
	t.Parallel()
	s := New()
	var got []store.Event
	c := join(t, s, func(e store.Event) { got = append(got, e) })
	acquire(t, c, "unwatched", "1")
	acquire(t, c, "unwatched", "2")
	c.Acquire(t.Context(), []store.AcquireRequest{{Key: "watched", Owner: "3", TTL: ttl, NotifyQueued: true}})
	for range 2 { // the second time as a heartbeat
		acquire(t, c, "watched", "4")
		acquire(t, c, "watched", "5")
	}
	if len(got) != 1 || got[0].Kind != store.EventQueued || got[0].Owner != "3" {
		t.Errorf("events: got %+v, want one EventQueued for the watching owner", got)
	}
}

func TestClientThatLeftIsToldNothing(t *testing.T) {
	t.Parallel()
	s := New()
	gone := join(t, s, func(e store.Event) { t.Errorf("got %+v after Close, want nothing", e) })
	c := join(t, s, nil)
	acquire(t, gone, "held", "1")
	acquire(t, c, "waited for", "2")
	acquire(t, gone, "waited for", "3")
	acquire(t, c, "waited for", "4")
	if err := gone.Close(t.Context()); err != nil {
		t.Errorf("Close: got %v, want no error", err)
	}
	if _, err := c.Force(t.Context(), "held", 0); err != nil {
		t.Errorf("Force: got %v, want no error", err)
	}
	release(t, c, store.ReleaseRequest{Key: "waited for", Owner: "2"})
	if got := acquire(t, c, "waited for", "4").Status; got != store.Granted {
		t.Errorf("the one behind the client that left: got status %d, want Granted", got)
	}
}

func TestJoinRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	s := New()
	if _, err := s.Open("", func(store.Event) {}); !errors.Is(err, store.ErrInvalidOption) {
		t.Errorf("Open without an id: got %v, want ErrInvalidOption", err)
	}
	if _, err := s.Open("id", nil); !errors.Is(err, store.ErrInvalidOption) {
		t.Errorf("Open without a receiver of events: got %v, want ErrInvalidOption", err)
	}
}
