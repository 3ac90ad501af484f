// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

func TestTryLockTakesAFreeKey(t *testing.T) {
	story(t, func(w *world) {
		l, err := w.client().TryLock(w.Context(), "key")
		if err != nil {
			w.Fatal(err)
		}
		w.pass(10 * ttl)
		wantValid(w, l)
		unlock(w, l)
		w.wantUnused()
	})
}

// wantHeld fails the test unless err says that the key is held, and by whom.
func wantHeld(w *world, err error, want asynclock.HeldError) {
	w.Helper()
	wantError(w, err, asynclock.ErrHeld)
	wantOp(w, err, "try lock", want.Key)
	var held *asynclock.HeldError
	if !errors.As(err, &held) {
		w.Fatalf("got error %#v, want a *HeldError", err)
	}
	if *held != want {
		w.Errorf("got %+v, want %+v", *held, want)
	}
}

func TestTryLockSaysWhoHoldsTheKey(t *testing.T) {
	scene(t, "another client", func(w *world) {
		l := lock(w, w.client(), "key", asynclock.WithDescription("the holder"))
		w.ask(w.Context(), w.client(), "key")
		w.ask(w.Context(), w.client(), "key")
		w.pass(time.Second)
		_, err := w.client().TryLock(w.Context(), "key")
		wantHeld(w, err, asynclock.HeldError{
			Key: "key", Holder: "the holder", Token: l.Token(), Remaining: ttl - time.Second, Waiters: 2,
		})
	})
	scene(t, "this client", func(w *world) {
		c := w.client()
		l := lock(w, c, "key", asynclock.WithDescription("the holder"))
		w.pass(time.Second)
		before := w.calls(asynclocktest.Any)
		_, err := c.TryLock(w.Context(), "key")
		wantHeld(w, err, asynclock.HeldError{
			Key: "key", Holder: "the holder", Token: l.Token(), Remaining: time.Until(l.Deadline()),
		})
		if got := w.calls(asynclocktest.Any); got != before {
			w.Errorf("the store was asked %d times, want never: the client knows", got-before)
		}
	})
	scene(t, "nobody yet, but others of this client are ahead", func(w *world) {
		holder, c := w.client(asynclock.WithDescription("the holder")), w.client()
		l := lock(w, holder, "key")
		w.ask(w.Context(), c, "key")
		w.pass(time.Second)
		_, err := c.TryLock(w.Context(), "key")
		wantHeld(w, err, asynclock.HeldError{
			Key: "key", Holder: "the holder", Token: l.Token(), Remaining: ttl - time.Second, Waiters: 1,
		})
	})
}

// That the store can't be asked is never told as contention.
func TestTryLockTellsAnOutageFromContention(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault asynclocktest.Fault
		want  error
	}{
		{"refusing", asynclocktest.Refuse, asynclock.ErrUnreachable},
		{"hanging", asynclocktest.Hang, asynclock.ErrUnreachable},
		{"silent", asynclocktest.Silence, asynclock.ErrUnreachable},
		{"breaking", asynclocktest.LoseReply, asynclock.ErrOutcomeUnknown},
	} {
		scene(t, c.name, func(w *world) {
			client := w.client()
			stop := w.store.Every(asynclocktest.Acquire.Any, c.fault)
			check := func(when string) {
				before := time.Now()
				_, err := client.TryLock(w.Context(), "key")
				wantError(w, err, c.want, asynclock.ErrUnreachable)
				wantOp(w, err, "try lock", "key")
				if errors.Is(err, asynclock.ErrHeld) || errors.Is(err, context.DeadlineExceeded) {
					w.Errorf("%s: got error %v, want one that speaks of the store", when, err)
				}
				if took := time.Since(before); took > callTimeout {
					w.Errorf("%s: took %v, want at most %v", when, took, callTimeout)
				}
			}
			check("alone")
			w.pass(time.Second)
			w.wantUnused() // what it may have taken was given back

			// Others of this client wait. Nevertheless the key may be free, as far as they
			// know.
			waiting := w.ask(w.Context(), client, "key")
			w.pass(callTimeout + 10*time.Millisecond)
			check("behind another")
			stop()
			unlock(w, waiting.get())
			w.pass(time.Second)
			w.wantUnused()
		})
	}
}

// Its context bounds it, too, and then it is the context's error.
func TestTryLockEndsWithItsContext(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.store.Next(asynclocktest.Acquire.On("key"), asynclocktest.Silence)
		ctx, cancel := context.WithTimeout(w.Context(), callTimeout/2)
		defer cancel()
		start := time.Now()
		_, err := c.TryLock(ctx, "key")
		wantError(w, err, context.DeadlineExceeded)
		if got := time.Since(start); got > callTimeout/2 {
			w.Errorf("took %v, want the context's %v", got, callTimeout/2)
		}
		if errors.Is(err, asynclock.ErrUnreachable) {
			w.Errorf("got error %v, want the context's", err)
		}
		w.wait()
		w.wantUnused()
	})
}

// Those who came behind a TryLock wait, whatever becomes of it.
func TestLockBehindATryLock(t *testing.T) {
	story(t, func(w *world) {
		holder, c := w.client(), w.client()
		held := lock(w, holder, "key")
		w.store.Next(asynclocktest.Acquire.From(1), asynclocktest.Slow(10*time.Millisecond, 10*time.Millisecond))
		tried := w.try(w.Context(), c)
		p := w.ask(w.Context(), c, "key")
		<-tried.done
		wantError(w, tried.err, asynclock.ErrHeld)
		p.waits()
		unlock(w, held)
		unlock(w, p.has())
		w.wantUnused()
	})
}

// Nor does it matter to a TryLock who comes behind it and leaves again.
func TestTryLockIsNotBegunAnewForThoseBehindIt(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.store.Next(asynclocktest.Acquire.Any, asynclocktest.Slow(callTimeout/2, 0))
		tried := w.try(w.Context(), c)
		ctx, leave := context.WithCancel(w.Context())
		p := w.ask(ctx, c, "key")
		leave()
		wantError(w, p.ended(), context.Canceled)
		before := time.Now()
		unlock(w, tried.get())
		if took := time.Since(before); took > callTimeout/2 {
			w.Errorf("took %v more, want at most %v", took, callTimeout/2)
		}
		w.wantCalls(asynclocktest.Acquire.Any, 1)
	})
}

// A request that must not queue is no answer to anyone but the TryLock it was
// made for.
func TestLockDoesNotGetTheAnswerOfATryLock(t *testing.T) {
	story(t, func(w *world) {
		holder, c := w.client(asynclock.WithRetention(ttl)), w.client()
		held := lock(w, holder, "key")
		w.store.Next(asynclocktest.Acquire.From(1), asynclocktest.Slow(callTimeout/4, 0))
		ctx, cancel := context.WithCancel(w.Context())
		tried := w.try(ctx, c)
		p := w.ask(w.Context(), c, "key")
		w.pass(callTimeout / 2) // the holder is notified, and TryLock waits before its second request
		cancel()
		<-tried.done
		wantError(w, tried.err, context.Canceled)
		p.waits()
		unlock(w, held)
		unlock(w, p.has())
	})
}
