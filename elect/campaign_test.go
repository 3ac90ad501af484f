// SPDX-License-Identifier: Apache-2.0

package elect_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/elect"
)

// next receives an element that must be there.
func (w *world) next(terms <-chan elect.Elected) elect.Elected {
	w.Helper()
	synctest.Wait()
	select {
	case e, open := <-terms:
		if !open {
			w.Fatal("the channel is closed, want an element")
		}
		return e
	default:
		w.Fatal("the channel is empty, want an element")
	}
	panic("unreachable")
}

// claim claims the next term.
func (w *world) claim(terms <-chan elect.Elected) *elect.Term {
	w.Helper()
	term, err := w.next(terms).Term()
	if err != nil {
		w.Fatal(err)
	}
	return term
}

func (w *world) wantClosed(terms <-chan elect.Elected) {
	w.Helper()
	synctest.Wait()
	select {
	case e, open := <-terms:
		if open {
			w.Errorf("got %+v, want the channel closed", e)
		}
	default:
		w.Error("the channel is open, want it closed")
	}
}

func TestCampaignSendsOneTermAfterAnother(t *testing.T) {
	story(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		a := elect.Campaign(ctx, w.client(), key, elect.WithValue([]byte("a")))
		other := w.client()
		first := w.claim(a)
		w.wantLeader(other, first.Token(), "a")
		w.pass(time.Hour)
		if len(a) != 0 || !first.Valid(0) {
			w.Errorf("elements during a term: got %d, term valid: %v; want none, valid", len(a), first.Valid(0))
		}
		if err := first.Resign(w.Context()); err != nil {
			w.Fatal(err)
		}
		second := w.claim(a)
		if second.Token() <= first.Token() {
			w.Errorf("number of the second term: got %d, want more than %d", second.Token(), first.Token())
		}
		cancel()
		w.wantClosed(a)
		w.pass(time.Hour)
		w.wantLeader(other, second.Token(), "a") // the term goes on
		if err := second.Resign(w.Context()); err != nil {
			w.Fatal(err)
		}
		w.wantLeader(other, 0, "")
	})
}

// A term that nobody receives goes to another candidate, and is campaigned for again.
func TestATermThatNobodyReceivesIsGivenBack(t *testing.T) {
	story(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		a := elect.Campaign(ctx, w.client(), key)
		synctest.Wait()
		b := w.run(w.client())
		w.pass(ttl - time.Second)
		b.wantTerms(0)
		w.pass(2 * time.Second)
		b.leads()
		if len(a) != 0 {
			w.Errorf("got %d elements while another leads, want none", len(a))
		}
		w.pass(2 * ttl)
		b.ends <- nil
		w.claim(a)
	})
}

// A term that was received is its receiver's, who has not looked at it yet.
func TestATermThatWasReceivedIsKept(t *testing.T) {
	story(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		a := elect.Campaign(ctx, w.client(), key)
		received := w.next(a)
		w.pass(time.Hour)
		term, err := received.Term()
		if err != nil {
			w.Fatal(err)
		}
		w.wantLeader(w.client(), term.Token(), "")
		if len(a) != 0 {
			w.Errorf("got %d elements, want none", len(a))
		}
	})
}

func TestACampaignThatWaitsEndsWithItsContext(t *testing.T) {
	story(t, func(w *world) {
		r := w.run(w.client())
		ctx, cancel := context.WithCancel(w.Context())
		a := elect.Campaign(ctx, w.client(), key)
		w.pass(time.Minute)
		cancel()
		w.wantClosed(a)
		r.leads()
	})
}

func TestACampaignEndsWithAnErrorThatNoRepetitionHelps(t *testing.T) {
	story(t, func(w *world) {
		for _, terms := range []<-chan elect.Elected{
			elect.Campaign(w.Context(), w.client(), ""),
			elect.Campaign(w.Context(), w.client(), "key", nil),
			elect.Campaign(nil, w.client(), key), //nolint:staticcheck // that is the point
		} {
			if _, err := w.next(terms).Term(); err == nil {
				w.Error("Term: got no error, want one")
			}
			w.wantClosed(terms)
		}
	})
}

func TestALostTermIsFollowedByTheNext(t *testing.T) {
	story(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		a := elect.Campaign(ctx, w.client(), key)
		first := w.claim(a)
		stop := w.store.Every(nil, asynclocktest.Refuse)
		w.pass(time.Minute)
		if first.Err() == nil || len(a) != 0 {
			w.Errorf("during an outage: got term error %v and %d elements, want it lost and none", first.Err(), len(a))
		}
		stop()
		w.pass(6 * time.Second)
		w.claim(a)
	})
}

func TestAnElectorSaysWhoLeads(t *testing.T) {
	story(t, func(w *world) {
		var a, b elect.Elector
		ctx, cancel := context.WithCancel(w.Context())
		done := make(chan error, 2)
		ours, theirs := w.client(), w.client()
		w.wantError(a.IsLeader(ctx), elect.ErrNotLeader)
		go func() { done <- elect.Run(ctx, ours, key, a.Lead) }()
		synctest.Wait()
		go func() { done <- elect.Run(w.Context(), theirs, key, b.Lead) }()
		synctest.Wait()
		if err := a.IsLeader(w.Context()); err != nil {
			w.Errorf("IsLeader: got %v, want nil", err)
		}
		w.wantError(b.IsLeader(w.Context()), elect.ErrNotLeader)
		if term, leads := a.Term(); !leads || term.Key() != key {
			w.Errorf("Term: got %v, %v; want a term", term, leads)
		}
		cancel()
		w.wantError(<-done, context.Canceled)
		synctest.Wait()
		w.wantError(a.IsLeader(w.Context()), elect.ErrNotLeader)
		w.wantError(a.IsLeader(ctx), context.Canceled)
		if err := b.IsLeader(w.Context()); err != nil {
			w.Errorf("IsLeader of the next: got %v, want nil", err)
		}
		_ = theirs.Close(ctx) // ends its leases
		w.wantError(<-done, asynclock.ErrClosed)
	})
}

// A leader that can't renew knows by the clock that it leads no more.
func TestAnElectorIsNoLeaderAfterItsTrustDeadline(t *testing.T) {
	story(t, func(w *world) {
		var e elect.Elector
		ctx, cancel := context.WithCancel(w.Context())
		done := make(chan error, 1)
		c := w.client()
		go func() { done <- elect.Run(ctx, c, key, e.Lead) }()
		synctest.Wait()
		w.store.Every(nil, asynclocktest.Hang)
		w.pass(ttl)
		w.wantError(e.IsLeader(w.Context()), elect.ErrNotLeader)
		cancel()
		w.wantError(<-done, context.Canceled)
	})
}

// A candidate whose term was resigned stays one.
func TestAnElectorWhoseTermIsResignedCampaignsAnew(t *testing.T) {
	story(t, func(w *world) {
		var e elect.Elector
		ctx, cancel := context.WithCancel(w.Context())
		done := make(chan error, 1)
		c := w.client()
		go func() { done <- elect.Run(ctx, c, key, e.Lead) }()
		synctest.Wait()
		before, _ := e.Term()
		if err := before.Resign(ctx); err != nil {
			w.Error(err)
		}
		w.pass(time.Second)
		if term, leads := e.Term(); !leads || term == before {
			w.Errorf("Term: got %v, %v; want the next term", term, leads)
		}
		cancel()
		w.wantError(<-done, context.Canceled)
	})
}

// The store is silent when a term is to begin.
func TestACampaignEndsSoonDuringAnOutage(t *testing.T) {
	story(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		w.store.Every(asynclocktest.WriteNote.Any, asynclocktest.Hang)
		a := elect.Campaign(ctx, w.client(), key)
		w.pass(time.Second)
		w.store.Every(nil, asynclocktest.Hang)
		cancel()
		w.pass(time.Second)
		w.wantClosed(a)
	})
}
