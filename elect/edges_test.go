// SPDX-License-Identifier: Apache-2.0

package elect_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/elect"
	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/store"
)

// A leader whose process was stopped for longer than its TTL. Its successor is known by then to whoever looks, and to
// the resource.
func TestALeaderThatWasStopped(t *testing.T) {
	story(t, func(w *world) {
		var resource fence.Gate
		write := func(term *elect.Term) error { return resource.Do(w.Context(), term, func() error { return nil }) }
		a, b := w.run(w.client(), elect.WithValue([]byte("a"))), w.run(w.client(), elect.WithValue([]byte("b")))
		leaders := w.watch(w.client())
		first := a.leads()
		w.wantSeen(leaders, first.Token(), "a")
		w.wantError(write(first))
		resume := w.store.Pause(0)
		w.pass(ttl + time.Second)
		second := b.leads()
		w.wantSeen(leaders, second.Token(), "b")
		w.wantError(write(second))
		resume()
		synctest.Wait()
		if a.ctx.Err() == nil || !errors.Is(context.Cause(a.ctx), asynclock.ErrLost) {
			w.Errorf("the context of a lost term: got cause %v, want ErrLost", context.Cause(a.ctx))
		}
		var stale *fence.StaleError
		if err := write(first); !errors.As(err, &stale) {
			w.Errorf("a write of a lost term: got %v, want a StaleError", err)
		}
		w.pass(time.Minute) // what it has sent late changes nothing
		w.wantNothing(leaders)
		w.wantError(write(b.leads()))
		a.wantTerms(1)
		b.ends <- nil
		if third := a.leads(); third.Token() <= second.Token() {
			w.Errorf("number of the third term: got %d, want more than %d", third.Token(), second.Token())
		}
	})
}

// Nobody learns what a lost term proclaims, whether its leader knows of the loss or finds out.
func TestALostTermProclaimsNothing(t *testing.T) {
	for name, knows := range map[string]bool{"its leader knows": true, "its leader does not know": false} {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				a, other := w.client(), w.client()
				term := w.claim(elect.Campaign(w.Context(), a, key, elect.WithValue([]byte("a"))))
				leaders := w.watch(other)
				w.wantSeen(leaders, term.Token(), "a")
				if !knows {
					w.store.EveryEvent(asynclocktest.EventMatch(asynclocktest.AnyEvent).For(0), asynclocktest.Drop)
				}
				w.store.Every(asynclocktest.Acquire.From(0), asynclocktest.Refuse) // it leads no more
				if _, err := other.ForceUnlock(w.Context(), key, 0); err != nil {
					w.Fatal(err)
				}
				time.Sleep(time.Millisecond) // the holder asks the store
				synctest.Wait()
				if got := term.Err() != nil; got != knows {
					w.Fatalf("the term: got error %v before Proclaim, want one: %v", term.Err(), knows)
				}
				writes := len(w.store.Calls(asynclocktest.WriteNote.Any))
				w.wantError(term.Proclaim(w.Context(), []byte("late")), asynclock.ErrLost)
				w.wantError(term.Err(), asynclock.ErrLost)
				w.wantSeen(leaders, 0, "")
				if got := len(w.store.Calls(asynclocktest.WriteNote.Any)) - writes; knows && got != 0 {
					w.Errorf("requests for the note of a term that is known to be lost: got %d, want none", got)
				}
				for _, e := range w.store.Events(asynclocktest.Kind(store.EventAnnounced)) {
					if string(e.Announcement.Data) == "late" {
						w.Errorf("announced: got %+v, want nothing of a lost term", e.Announcement)
					}
				}
				n, err := other.Note(w.Context(), key)
				if w.wantError(err); string(n.Data) != "a" || n.Token != term.Token() {
					w.Errorf("the note: got %q with token %d, want %q of term %d", n.Data, n.Token, "a", term.Token())
				}
			})
		})
	}
}

// A candidate that resigns and is alone leads again at once. That is another term, and observers are told so.
func TestTheNextTermOfTheSameCandidateIsAnnounced(t *testing.T) {
	story(t, func(w *world) {
		leaders := w.watch(w.client())
		w.wantSeen(leaders, 0, "")
		w.pass(time.Second) // beyond the look that follows the first event
		looks, start := w.looks(), time.Now()
		r := w.run(w.client(), elect.WithValue([]byte("a")))
		last := w.wantSeen(leaders, r.leads().Token(), "a").Token
		for range 5 {
			r.ends <- nil
			seen := w.wantSeen(leaders, r.leads().Token(), "a")
			if seen.Token <= last {
				w.Errorf("number of the next term: got %d, want more than %d", seen.Token, last)
			}
			last = seen.Token
		}
		if n := w.looks() - looks; n != 0 || time.Since(start) != 0 {
			w.Errorf("got %d looks in %v, want none: all was announced at once", n, time.Since(start))
		}
	})
}

// Where pub-sub is denied, the store says that announcements don't come through. They never have.
func TestAnObserverThatIsDeniedAnnouncements(t *testing.T) {
	story(t, func(w *world) {
		denied := w.client()
		for _, kind := range []store.EventKind{store.EventObserving, store.EventAnnounced} {
			w.store.EveryEvent(asynclocktest.Kind(kind).For(0), asynclocktest.Drop)
		}
		leaders := w.watch(denied)
		w.store.Tell(0, store.Event{Kind: store.EventUnobserved, Key: key})
		w.wantSeen(leaders, 0, "")
		r := w.run(w.client(), elect.WithValue([]byte("a")), elect.WithLockOptions(asynclock.WithTTL(time.Hour)))
		w.pass(interval)
		w.wantSeen(leaders, r.leads().Token(), "a")
		r.proclaim("b")
		w.wantNothing(leaders)
		w.pass(interval)
		w.wantSeen(leaders, r.leads().Token(), "b")
		before := w.looks()
		w.pass(100 * interval)
		if n := w.looks() - before; n < 100 || n > 130 {
			w.Errorf("looks in %v: got %d, want one in %v or a little less", 100*interval, n, interval)
		}
		r.ends <- elect.ErrResign
		w.pass(interval)
		w.wantSeen(leaders, 0, "")
	})
}

// A promoted store is one whose server was promoted and lacks the notes.
type promoted struct {
	store.Store

	forgot *atomic.Bool
}

func (s promoted) Open(id string, notify func(store.Event)) (store.Session, error) {
	inner, err := s.Store.Open(id, notify)
	if err != nil {
		return nil, err
	}
	return promotedSession{inner.(store.ObserveSession), s.forgot}, nil //nolint:forcetypeassert // it is one
}

type promotedSession struct {
	store.ObserveSession

	forgot *atomic.Bool
}

func (s promotedSession) WriteNote(ctx context.Context, r store.NoteRequest) error {
	err := s.ObserveSession.WriteNote(ctx, r)
	if err == nil {
		s.forgot.Store(false)
	}
	return err
}

func (s promotedSession) ReadNote(ctx context.Context, key string) (store.Note, error) {
	n, err := s.ObserveSession.ReadNote(ctx, key)
	if s.forgot.Load() {
		n.Data, n.Token, n.Seq = nil, 0, 0
	}
	return n, err
}

// failsOver lets the store forget its notes. From then on it grants nothing for as long as the grace lasts.
func (w *world) failsOver(forgot *atomic.Bool) (end time.Time) {
	const grace = 15 * time.Second
	forgot.Store(true)
	end = time.Now().Add(grace)
	stop := w.store.Every(asynclocktest.Acquire.Any, func(context.Context, func()) error {
		return &store.GraceError{Remaining: time.Until(end)}
	})
	time.AfterFunc(grace, stop)
	return end
}

// A leader outlasts a failover. It writes its note again: with the next Proclaim, or within a minute.
func TestALeaderGoesOnAfterAFailover(t *testing.T) {
	for name, proclaims := range map[string]bool{"it proclaims": true, "it proclaims nothing": false} {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				var forgot atomic.Bool
				st := promoted{w.store, &forgot}
				r, other := w.run(w.clientOf(st), elect.WithValue([]byte("a"))), w.clientOf(st)
				term, value := r.leads(), "a"
				w.pass(time.Second)
				w.failsOver(&forgot)
				late := w.run(w.clientOf(st))
				w.wantLeader(other, term.Token(), "")
				if proclaims {
					value = "b"
					r.proclaim(value)
					w.wantLeader(other, term.Token(), value)
				}
				w.pass(time.Minute)
				w.wantLeader(other, term.Token(), value)
				r.wantTerms(1)
				late.wantTerms(0)
				late.goesOn()
				r.ends <- elect.ErrResign
				late.leads()
			})
		})
	}
}

// In the grace after a failover nobody begins a term, even if nobody leads.
func TestNoTermBeginsInTheGraceAfterAFailover(t *testing.T) {
	story(t, func(w *world) {
		var forgot atomic.Bool
		st := promoted{w.store, &forgot}
		r, other := w.run(w.clientOf(st), elect.WithValue([]byte("a"))), w.clientOf(st)
		r.leads()
		end := w.failsOver(&forgot)
		next := w.run(w.clientOf(st), elect.WithValue([]byte("b")))
		w.pass(time.Second)
		r.ends <- elect.ErrResign
		w.pass(time.Until(end) - time.Millisecond)
		next.wantTerms(0)
		next.goesOn()
		w.wantLeader(other, 0, "")
		w.pass(7 * time.Second) // a pause between two tries
		w.wantLeader(other, next.leads().Token(), "b")
	})
}

// A term that is on its way to somebody who has gone.
func TestATermThatNobodyReceivesIsGivenBackAtTheEnd(t *testing.T) {
	story(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		terms := elect.Campaign(ctx, w.client(), key)
		synctest.Wait() // it has the term
		next := w.run(w.client())
		next.wantTerms(0)
		start := time.Now()
		cancel()
		next.leads() // although nobody has received
		if took := time.Since(start); took != 0 {
			w.Errorf("the next term began after %v, want at once", took)
		}
		w.wantClosed(terms)
	})
}
