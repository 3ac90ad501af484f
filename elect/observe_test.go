// SPDX-License-Identifier: Apache-2.0

package elect_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/elect"
	"github.com/asynclock/asynclock-go/store"
)

const interval = 2 * time.Second // of an observer

func (w *world) observe(ctx context.Context, c *asynclock.Client, options ...elect.Option) <-chan elect.Leader {
	w.Helper()
	leaders, err := elect.Observe(ctx, c, key, options...)
	if err != nil {
		w.Fatal(err)
	}
	return leaders
}

// wantSeen checks the next element, which must be there.
func (w *world) wantSeen(leaders <-chan elect.Leader, token int64, value string) elect.Leader {
	w.Helper()
	synctest.Wait()
	select {
	case l := <-leaders:
		if l.Token != token || string(l.Value) != value || l.Key != key {
			w.Errorf("seen: got %+v, want term %d with value %q", l, token, value)
		}
		return l
	default:
		w.Errorf("seen: got nothing, want term %d with value %q", token, value)
		return elect.Leader{}
	}
}

func (w *world) wantNothing(leaders <-chan elect.Leader) {
	w.Helper()
	synctest.Wait()
	if len(leaders) != 0 {
		w.Errorf("seen: got %+v, want nothing", <-leaders)
	}
}

// There may be several readers of the key, or holders of permits. None of them leads.
func TestWhoSharesTheKeyDoesNotLead(t *testing.T) {
	story(t, func(w *world) {
		features := w.store.Features()
		features.Notes = false
		other, looks, noteless := w.client(), w.client(), w.clientOf(poor{w.store, features})
		s, err := other.Semaphore(key, 2)
		if err != nil {
			w.Fatal(err)
		}
		r := w.run(w.client()) // there is a note of a term before
		r.leads()
		r.ends <- elect.ErrResign
		synctest.Wait()
		for _, c := range []struct {
			take  func() (*asynclock.Lease, error)
			leads bool
		}{
			{func() (*asynclock.Lease, error) { return other.RLock(w.Context(), key) }, false},
			{func() (*asynclock.Lease, error) { return s.Acquire(w.Context(), 1) }, false},
			{func() (*asynclock.Lease, error) { return other.Lock(w.Context(), key) }, true},
		} {
			lease, err := c.take()
			if err != nil {
				w.Fatal(err)
			}
			leader := int64(0)
			if c.leads {
				leader = lease.Token()
			}
			w.wantLeader(looks, leader, "")
			w.wantLeader(noteless, leader, "")
			if err := lease.Unlock(w.Context()); err != nil {
				w.Error(err)
			}
		}
	})
}

func TestAnObserverSeesWhoLeadsAndEachChange(t *testing.T) {
	story(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		leaders := w.observe(ctx, w.client())
		w.wantSeen(leaders, 0, "")
		r := w.run(w.client(asynclock.WithDescription("the leader")), elect.WithValue([]byte("a")))
		w.pass(interval)
		l := w.wantSeen(leaders, r.leads().Token(), "a")
		if left := time.Until(l.Until); l.Holder != "the leader" || left <= 0 || left > ttl {
			w.Errorf("the leader: got %+v, until in %v; want its description, and a time up to %v", l, left, ttl)
		}
		w.pass(time.Hour) // renewals are no changes
		w.wantNothing(leaders)
		if err := r.leads().Proclaim(w.Context(), []byte("b")); err != nil {
			w.Fatal(err)
		}
		w.pass(interval)
		w.wantSeen(leaders, r.leads().Token(), "b")
		r.ends <- nil
		w.pass(interval)
		w.wantSeen(leaders, r.leads().Token(), "a")
		r.cancel()
		w.pass(interval)
		w.wantSeen(leaders, 0, "")
		cancel()
		synctest.Wait()
		if _, open := <-leaders; open {
			w.Error("the channel is open after the end of the context")
		}
	})
}

func TestASlowObserverMissesNeverTheLatest(t *testing.T) {
	story(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		leaders := w.observe(ctx, w.client())
		r := w.run(w.client())
		for range 5 {
			w.pass(2 * interval)
			r.leads()
			r.ends <- nil
		}
		w.pass(interval)
		w.wantSeen(leaders, r.leads().Token(), "")
		w.wantNothing(leaders)
	})
}

func TestAnObserverMayChangeTheValueItGot(t *testing.T) {
	story(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		w.run(w.client(), elect.WithValue([]byte("value")))
		leaders := w.observe(ctx, w.client())
		copy((<-leaders).Value, "other")
		w.pass(2 * interval)
		w.wantNothing(leaders)
	})
}

// A leader that dies tells nobody. Its time runs out between two looks.
func TestAnObserverLooksWhenTheTimeOfALeaderRunsOut(t *testing.T) {
	story(t, func(w *world) {
		r := w.run(w.client())
		r.leads()
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		leaders := w.observe(ctx, w.client(), elect.WithInterval(time.Hour))
		l := <-leaders
		w.store.Every(asynclocktest.Match(nil).From(0), asynclocktest.Hang)
		w.pass(time.Until(l.Until))
		w.wantSeen(leaders, 0, "")
	})
}

func TestAnObserverLooksAsOftenAsItIsTold(t *testing.T) {
	story(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		w.observe(ctx, w.client(), elect.WithInterval(elect.MinInterval))
		w.pass(10 * time.Second)
		if n := len(w.store.Calls(asynclocktest.ReadNote.Any)); n < 100 || n > 130 {
			w.Errorf("looks in 100 intervals: got %d, want 100 to 130", n)
		}
	})
}

// Without the store nothing is known, and nothing is sent.
func TestAnObserverDuringAnOutage(t *testing.T) {
	story(t, func(w *world) {
		r := w.run(w.client(), elect.WithLockOptions(asynclock.WithTTL(time.Minute)))
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		stop := w.store.Every(asynclocktest.ReadNote.Any, asynclocktest.Refuse)
		leaders := w.observe(ctx, w.client())
		w.pass(10 * time.Second)
		w.wantNothing(leaders)
		stop()
		w.pass(interval)
		w.wantSeen(leaders, r.leads().Token(), "")
		before := len(w.store.Calls(asynclocktest.ReadNote.Any))
		stop = w.store.Every(asynclocktest.ReadNote.Any, asynclocktest.Refuse)
		w.pass(10 * time.Minute) // far beyond Until
		w.wantNothing(leaders)
		if n := len(w.store.Calls(asynclocktest.ReadNote.Any)) - before; n > 400 {
			w.Errorf("looks in 300 intervals of an outage: got %d, want 400 at most", n)
		}
		stop()
		r.ends <- nil
		w.pass(interval)
		w.wantSeen(leaders, r.leads().Token(), "")
	})
}

// A server that was promoted may show the leader of before.
func TestTermsThatAreSeenNeverGoBack(t *testing.T) {
	story(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		old := &oldStore{Store: w.store}
		leaders := w.observe(ctx, w.clientOf(old))
		w.wantSeen(leaders, 0, "")
		r := w.run(w.client())
		first := r.leads().Token()
		r.ends <- nil
		second := r.leads().Token()
		w.pass(interval)
		w.wantSeen(leaders, second, "")
		r.cancel()
		_ = r.over()
		w.pass(interval)
		w.wantSeen(leaders, 0, "")
		old.shows.Store(first)
		w.pass(interval)
		w.wantNothing(leaders)
		old.shows.Store(second + 1)
		w.pass(interval)
		w.wantSeen(leaders, second+1, "")
	})
}

// An oldStore shows a holder with this token.
type oldStore struct {
	store.Store

	shows atomic.Int64
}

func (s *oldStore) Open(id string, notify func(store.Event)) (store.Session, error) {
	inner, err := s.Store.Open(id, notify)
	if err != nil {
		return nil, err
	}
	return oldSession{inner.(store.NoteSession), s}, nil
}

type oldSession struct {
	store.NoteSession

	store *oldStore
}

func (s oldSession) ReadNote(ctx context.Context, key string) (store.Note, error) {
	n, err := s.NoteSession.ReadNote(ctx, key)
	if token := s.store.shows.Load(); token != 0 {
		n.Held, n.HolderToken, n.Token = true, token, 0
	}
	return n, err
}

// Somebody who only locks the key leads without a value, whatever the note of before says.
func TestALockIsALeaderWithoutAValue(t *testing.T) {
	story(t, func(w *world) {
		r := w.run(w.client(), elect.WithValue([]byte("a")))
		r.leads()
		r.cancel()
		_ = r.over()
		c := w.client()
		l, err := c.Lock(w.Context(), key)
		if err != nil {
			w.Fatal(err)
		}
		w.wantLeader(c, l.Token(), "")
		waits := w.run(w.client())
		w.pass(time.Minute)
		waits.wantTerms(0)
		_ = l.Unlock(w.Context())
		waits.leads()
	})
}

func TestAnObserverEndsWithItsClient(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		leaders := w.observe(w.Context(), c)
		w.wantSeen(leaders, 0, "")
		_ = c.Close(w.Context())
		w.pass(interval)
		if _, open := <-leaders; open {
			w.Error("the channel is open after the client was closed")
		}
	})
}
