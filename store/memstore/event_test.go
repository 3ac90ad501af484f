// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"errors"
	"testing"

	"github.com/asynclock/asynclock-go/asynclock"
)

func TestEventsComeBeforeTheReplyAndWithoutTheMutex(t *testing.T) {
	t.Parallel()
	s := New()
	var c asynclock.Session
	var got []asynclock.EventKind
	c = join(t, s, func(e asynclock.Event) {
		got = append(got, e.Kind)
		// A receiver must not block, but if the mutex were held this would.
		if _, err := c.Inspect(t.Context(), "key"); err != nil {
			t.Errorf("Inspect: got %v, want no error", err)
		}
	})
	acquire(t, c, "key", "1")
	acquire(t, c, "key", "2")
	release(t, c, asynclock.ReleaseRequest{Key: "key", Owner: "1"})
	if len(got) != 1 || got[0] != asynclock.EventGrant {
		t.Errorf("events when Release has returned: got %v, want one EventGrant", got)
	}
	if _, err := c.Force(t.Context(), "key"); err != nil {
		t.Errorf("Force: got %v, want no error", err)
	}
	if len(got) != 2 || got[1] != asynclock.EventForced {
		t.Errorf("events when Force has returned: got %v, want an EventForced more", got)
	}
}

func TestContentionIsToldOnceAndOnlyToThoseWhoAsked(t *testing.T) {
	t.Parallel()
	s := New()
	var got []asynclock.Event
	c := join(t, s, func(e asynclock.Event) { got = append(got, e) })
	acquire(t, c, "unwatched", "1")
	acquire(t, c, "unwatched", "2")
	c.Acquire(t.Context(), []asynclock.AcquireRequest{{Key: "watched", Owner: "3", TTL: ttl, WatchContention: true}})
	for range 2 { // the second time as a heartbeat
		acquire(t, c, "watched", "4")
		acquire(t, c, "watched", "5")
	}
	if len(got) != 1 || got[0].Kind != asynclock.EventContended || got[0].Owner != "3" {
		t.Errorf("events: got %+v, want one EventContended for the watching owner", got)
	}
}

func TestClientThatLeftIsToldNothing(t *testing.T) {
	t.Parallel()
	s := New()
	gone := join(t, s, func(e asynclock.Event) { t.Errorf("got %+v after Leave, want nothing", e) })
	c := join(t, s, nil)
	acquire(t, gone, "held", "1")
	acquire(t, c, "waited for", "2")
	acquire(t, gone, "waited for", "3")
	acquire(t, c, "waited for", "4")
	if err := gone.Leave(t.Context()); err != nil {
		t.Errorf("Leave: got %v, want no error", err)
	}
	if _, err := c.Force(t.Context(), "held"); err != nil {
		t.Errorf("Force: got %v, want no error", err)
	}
	release(t, c, asynclock.ReleaseRequest{Key: "waited for", Owner: "2"})
	if got := acquire(t, c, "waited for", "4").Status; got != asynclock.Granted {
		t.Errorf("the one behind the client that left: got status %d, want Granted", got)
	}
}

func TestJoinRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	s := New()
	if _, err := s.Join("", func(asynclock.Event) {}); !errors.Is(err, asynclock.ErrBadOption) {
		t.Errorf("Join without an id: got %v, want ErrBadOption", err)
	}
	if _, err := s.Join("id", nil); !errors.Is(err, asynclock.ErrBadOption) {
		t.Errorf("Join without a receiver of events: got %v, want ErrBadOption", err)
	}
}
