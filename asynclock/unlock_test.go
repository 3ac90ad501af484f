// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

// steal has the store take "key" from its holder, whom nobody tells.
func (w *world) steal() {
	w.Helper()
	w.store.EveryEvent(asynclocktest.AnyEvent, asynclocktest.Drop)
	if _, err := w.session().Force(w.Context(), "key", 0); err != nil {
		w.Fatal(err)
	}
}

func TestUnlockGivesTheKeyToTheNext(t *testing.T) {
	story(t, func(w *world) {
		holder, waiter := w.client(), w.client()
		l := lock(w, holder, "key")
		p := w.ask(w.Context(), waiter, "key")
		unlock(w, l)
		wantError(w, l.Err(), asynclock.ErrUnlocked)
		if l.Valid(0) || errors.Is(l.Err(), asynclock.ErrLost) {
			w.Errorf("an unlocked lease: got valid %v, error %v", l.Valid(0), l.Err())
		}
		unlock(w, p.has())
		w.wantUnused()
	})
}

// However often and from how many goroutines, each call gives the first one's
// answer, and the store is asked once.
func TestUnlockGivesOneAnswer(t *testing.T) {
	for _, c := range []struct {
		name string
		lose bool // the key, before
		want error
	}{
		{"the key was ours", false, nil},
		{"the key was not ours any more", true, asynclock.ErrLost},
	} {
		scene(t, c.name, func(w *world) {
			l := lock(w, w.client(), "key")
			if c.lose {
				w.steal()
			}
			w.store.Next(asynclocktest.Release.On("key"), asynclocktest.Slow(10*time.Millisecond, 10*time.Millisecond))
			const calls = 100
			answers := make(chan error, 2*calls)
			for range calls {
				go func() { answers <- l.Unlock(w.Context()) }()
				go func() { answers <- <-l.UnlockChan(w.Context()) }()
			}
			for range 2 * calls {
				if err := <-answers; !errors.Is(err, c.want) {
					w.Fatalf("got error %v, want %v", err, c.want)
				}
			}
			for _, err := range []error{l.Unlock(w.Context()), <-l.UnlockChan(w.Context())} {
				if !errors.Is(err, c.want) {
					w.Errorf("later: got error %v, want %v", err, c.want)
				}
			}
			w.wantCalls(asynclocktest.Release.On("key"), 1)
		})
	}
}

// The end of the caller's context does not keep the key.
func TestUnlockWithAContextThatHasEndedGivesTheKeyBack(t *testing.T) {
	story(t, func(w *world) {
		holder, waiter := w.client(), w.client()
		l := lock(w, holder, "key")
		p := w.ask(w.Context(), waiter, "key")
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		wantError(w, l.Unlock(ctx), nil)
		again := p.has()
		wantError(w, <-again.UnlockChan(ctx), nil)
		w.wantUnused()
	})
}

// If the store does not answer, Unlock waits for as long as its context lasts
// but no longer than it says; the key is given back in the background.
func TestUnlockOfASilentStoreIsBounded(t *testing.T) {
	const long = time.Hour
	for _, c := range []struct {
		name   string
		fault  asynclocktest.Fault
		ctx    time.Duration // how long it lasts
		most   time.Duration
		errors []error
	}{
		{"refusing", asynclocktest.Refuse, long, 10 * time.Second, []error{asynclock.ErrUnreachable}},
		{"hanging", asynclocktest.Hang, long, 11 * time.Second, []error{asynclock.ErrUnreachable, asynclock.ErrOutcomeUnknown}},
		{"hanging for less time", asynclocktest.Hang, 3 * time.Second, 3 * time.Second, []error{asynclock.ErrOutcomeUnknown, context.DeadlineExceeded}},
		{"hanging for no time", asynclocktest.Hang, 0, time.Second, []error{asynclock.ErrOutcomeUnknown, context.DeadlineExceeded}},
	} {
		scene(t, c.name, func(w *world) {
			holder, waiter := w.client(asynclock.WithTTL(long)), w.client()
			l := lock(w, holder, "key")
			p := w.ask(w.Context(), waiter, "key")
			stop := w.store.Every(asynclocktest.Match(asynclocktest.Any).From(0), c.fault)
			ctx, cancel := context.WithTimeout(w.Context(), c.ctx)
			defer cancel()
			before := time.Now()
			err := l.Unlock(ctx)
			wantError(w, err, c.errors...)
			wantOp(w, err, "unlock", "key")
			if took := time.Since(before); took > c.most {
				w.Errorf("Unlock took %v, want at most %v", took, c.most)
			}
			if len(c.errors) == 2 && !errors.Is(c.errors[1], context.DeadlineExceeded) && errors.Is(err, context.DeadlineExceeded) {
				w.Errorf("got %v, whose context has not ended", err)
			}
			w.pass(time.Minute)
			p.waits()
			stop()
			w.pass(5 * time.Minute)
			unlock(w, p.has())
			w.wantUnused()
		})
	}
}

// A release is repeated ever less often, and no longer than the TTL can last.
func TestReleaseIsGivenUpWhenTheTTLHasDoneItsWork(t *testing.T) {
	for _, c := range []struct {
		name   string
		fault  asynclocktest.Fault
		errors []error
	}{
		{"refused", asynclocktest.Refuse, []error{asynclock.ErrUnreachable}},
		{"hanging", asynclocktest.Hang, []error{asynclock.ErrUnreachable, asynclock.ErrOutcomeUnknown}},
	} {
		scene(t, c.name, func(w *world) {
			l := lock(w, w.client(), "key")
			w.store.Every(asynclocktest.Release.On("key"), c.fault)
			before := time.Now()
			err := <-l.UnlockChan(w.Context())
			wantError(w, err, c.errors...)
			wantOp(w, err, "unlock", "key")
			if errors.Is(err, context.DeadlineExceeded) {
				w.Errorf("got %v, whose context has not ended", err)
			}
			took := time.Since(before)
			if took < ttl || took > 3*ttl {
				w.Errorf("gave up after %v, want some time after the TTL of %v", took, ttl)
			}
			tried := w.calls(asynclocktest.Release.On("key"))
			if tried > 100 {
				w.Errorf("tried %d times in %v, want a few dozen", tried, took)
			}
			w.pass(time.Hour)
			if got := w.calls(asynclocktest.Release.On("key")); got != tried {
				w.Errorf("tried %d times more after giving up", got-tried)
			}
		})
	}
}

// UnlockChan does not wait; its channel has exactly one answer and is not
// closed.
func TestUnlockChanHasOneAnswer(t *testing.T) {
	type name struct{}
	story(t, func(w *world) {
		l := lock(w, w.client(), "key")
		ctx, cancel := context.WithCancel(context.WithValue(w.Context(), name{}, "value"))
		cancel()
		w.store.Next(asynclocktest.Release.On("key"), func(ctx context.Context, carry func()) error {
			if ctx.Err() != nil || ctx.Value(name{}) != "value" {
				w.Errorf("the request's context has error %v and value %v, want the caller's values only", ctx.Err(), ctx.Value(name{}))
			}
			time.Sleep(10 * time.Millisecond)
			carry()
			return nil
		})
		before := time.Now()
		first, second := l.UnlockChan(ctx), l.UnlockChan(ctx)
		wantTime(w, "return", time.Now(), before)
		if l.Err() == nil {
			w.Error("the lease lasts after UnlockChan")
		}
		w.pass(time.Minute)
		for _, answers := range []<-chan error{first, second} {
			if len(answers) != 1 {
				w.Fatalf("the channel has %d answers, want one", len(answers))
			}
			wantError(w, <-answers, nil)
			select {
			case err, open := <-answers:
				w.Errorf("the channel has another answer %v, open %v", err, open)
			default:
			}
		}
		w.wantUnused()
	})
}

// Unlock says that the key was lost if the store says so, even though this
// client had not noticed.
func TestUnlockFindsTheLoss(t *testing.T) {
	story(t, func(w *world) {
		l := lock(w, w.client(), "key")
		w.steal()
		wantValid(w, l)
		wantError(w, l.Unlock(w.Context()), asynclock.ErrLost)
		wantError(w, l.Unlock(w.Context()), asynclock.ErrLost)
		w.wantUnused()
	})
}

// A lease belongs to no goroutine: one takes it, another gives it back.
func TestUnlockFromAnyGoroutine(t *testing.T) {
	story(t, func(w *world) {
		l := w.ask(w.Context(), w.client(), "key").has()
		answer := make(chan error)
		go func() { answer <- l.Unlock(w.Context()) }()
		wantError(w, <-answer, nil)
		w.wantUnused()
	})
}

// The end of its context leaves Unlock a moment for the answer. The key is given back later.
func TestUnlockEndsSoonAfterItsContext(t *testing.T) {
	const grace = 50 * time.Millisecond
	for name, lasts := range map[string]time.Duration{"ended before": 0, "ends meanwhile": 300 * time.Millisecond} {
		scene(t, name, func(w *world) {
			c, other := w.client(), w.client()
			l := lock(w, c, "key")
			stop := w.store.Every(asynclocktest.Release.Any, asynclocktest.Hang)
			ctx, cancel := context.WithTimeout(w.Context(), lasts)
			defer cancel()
			began := time.Now()
			err := l.Unlock(ctx)
			if took := since(began); took != lasts+grace {
				w.Errorf("Unlock took %v, want %v", took, lasts+grace)
			}
			wantError(w, err, asynclock.ErrOutcomeUnknown, context.DeadlineExceeded)
			stop()
			l = lock(w, other, "key")
			if waited := since(began); waited > 5*time.Second {
				w.Errorf("the next had the key after %v, want it long before the end of the TTL", waited)
			}
			unlock(w, l)
		})
	}
}

// A store that answers in that moment has given the key back.
func TestUnlockUnderAnEndedContextHearsAStoreNearby(t *testing.T) {
	story(t, func(w *world) {
		l := lock(w, w.client(), "key")
		w.store.Every(asynclocktest.Release.Any, asynclocktest.Slow(20*time.Millisecond, 20*time.Millisecond))
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		wantError(w, l.Unlock(ctx), nil)
		w.wantUnused()
	})
}

// go vet warns of a copy of a lease. Such a copy is the same lease.
func TestACopyOfALeaseIsTheSameLease(t *testing.T) {
	for name, detects := range map[string]bool{"with leak detection": true, "without": false} {
		t.Run(name, func(t *testing.T) { testCopyOfALease(t, detects) })
	}
}

func testCopyOfALease(t *testing.T, detects bool) {
	t.Helper()
	story(t, func(w *world) {
		l := lock(w, w.client(asynclock.WithLeakDetection(detects)), "key")
		copied := new(asynclock.Lease)
		reflect.ValueOf(copied).Elem().Set(reflect.ValueOf(l).Elem())
		ends := []<-chan struct{}{l.Done(), copied.Done(), l.Context().Done(), copied.Context().Done()}
		unlock(w, copied)
		w.wait()
		for i, end := range ends {
			select {
			case <-end:
			default:
				w.Errorf("number %d of the channels of Done: open, want it closed", i)
			}
		}
		wantError(w, l.Err(), asynclock.ErrUnlocked)
		if l.Valid(0) || copied.Valid(0) {
			w.Error("the lease is valid after the unlock of its copy")
		}
		unlock(w, l) // again
		w.wantUnused()
	})
}

// An Unlock that finds the key lost says what the store knows of the reason, and
// so does the log.
func TestUnlockSaysWhyTheLeaseWasLost(t *testing.T) {
	scene(t, "nobody has it", func(w *world) {
		var log notebook
		l := lock(w, w.client(log.option(slog.LevelWarn)), "key")
		w.steal()
		wantError(w, l.Unlock(w.Context()), asynclock.ErrExpired)
		w.wait()
		log.wantLine(w, "level=WARN", "lost", "key=key", "expired")
	})
	scene(t, "another has it", func(w *world) {
		var log notebook
		l, other := lock(w, w.client(log.option(slog.LevelWarn)), "key"), w.client()
		w.steal()
		theirs := lock(w, other, "key")
		wantError(w, l.Unlock(w.Context()), asynclock.ErrStolen)
		w.wait()
		log.wantLine(w, "level=WARN", "lost", "key=key", "another owner")
		wantValid(w, theirs)
	})
	odd := errors.New("the session moved")
	for name, c := range map[string]struct {
		cause error
		wants []error
		text  string
	}{
		"the store does not know":         {nil, []error{asynclock.ErrLost}, "until the unlock"},
		"the cause is of an unknown kind": {odd, []error{asynclock.ErrLost, odd}, "the session moved"},
	} {
		scene(t, name, func(w *world) {
			oblivious := altered{Store: w.store, released: func(r *store.ReleaseReply) { *r = store.ReleaseReply{Cause: c.cause} }}
			err := lock(w, w.clientOf(oblivious), "key").Unlock(w.Context())
			wantError(w, err, c.wants...)
			if !strings.Contains(err.Error(), c.text) {
				w.Errorf("got error %q, want it to say %q", err, c.text)
			}
		})
	}
}

// A release that takes its time may find that the TTL has ended meanwhile. The
// lease was trusted when it was unlocked, so the work was covered and nothing
// was lost.
func TestReleaseThatArrivesAfterTheTTLIsNoLoss(t *testing.T) {
	story(t, func(w *world) {
		l := lock(w, w.client(), "key", asynclock.WithMaxHold(asynclock.MinTTL))
		w.store.Next(asynclocktest.Release.On("key"), asynclocktest.Slow(callTimeout/2, 0))
		wantError(w, l.Unlock(w.Context()), nil)
		w.wantUnused()
	})
}

// grantedDuringAHeartbeat returns a lease that the second client was granted by
// message while its heartbeat was under way, which takes so long there and back.
func (w *world) grantedDuringAHeartbeat(there, back time.Duration, options ...asynclock.LockOption) *asynclock.Lease {
	w.Helper()
	held := lock(w, w.client(), "key")
	p := w.ask(w.Context(), w.client(), "key", options...)
	w.store.Next(asynclocktest.Acquire.From(1), asynclocktest.Slow(there, back))
	for w.calls(asynclocktest.Acquire.From(1)) < 2 {
		w.pass(time.Millisecond)
	}
	unlock(w, held)
	return p.has()
}

// A release that finds nothing is a loss, also while a heartbeat from before the grant is under way.
func TestLossIsToldDuringAHeartbeat(t *testing.T) {
	story(t, func(w *world) {
		l := w.grantedDuringAHeartbeat(0, 200*time.Millisecond)
		w.steal()
		wantError(w, l.Unlock(w.Context()), asynclock.ErrLost)
	})
}
