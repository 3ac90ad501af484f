// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

// downgrade makes a reader of a holder that can be one.
func downgrade(w *world, l *asynclock.Lease) *asynclock.Lease {
	w.Helper()
	reader, err := l.Downgrade(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return reader
}

func TestDowngradeLetsNoWriterInBetween(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		writer := lock(w, ours, "key")
		first := w.askBy(w.Context(), theirs.RLock, "key")
		local := w.askBy(w.Context(), ours.RLock, "key")
		other := w.ask(w.Context(), theirs, "key")
		reader := downgrade(w, writer)
		wantError(w, writer.Err(), asynclock.ErrUnlocked)
		if err := writer.Unlock(w.Context()); err != nil {
			w.Errorf("Unlock of the writer's lease: got %v, want nil, as of any lease that is unlocked", err)
		}
		if reader.Mode() != asynclock.Shared || reader.Token() <= writer.Token() {
			w.Errorf("the reader's lease: got mode %v, token %d; want a larger token than %d", reader.Mode(), reader.Token(), writer.Token())
		}
		if got := first.has().Token(); got != reader.Token() { // it waited at the head of the queue
			w.Errorf("the token of the reader that joined: got %d, want %d", got, reader.Token())
		}
		unlock(w, local.has())
		other.waits()
		w.pass(3 * ttl)
		wantValid(w, reader)
		unlock(w, first.has())
		other.waits()
		unlock(w, reader)
		unlock(w, other.has())
		w.wait()
		w.wantUnused()
	})
}

// A tenure that a downgrade began is open to readers of the client once the store has agreed to tell of
// waiters.
func TestReadersJoinADowngradedLease(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		reader := downgrade(w, lock(w, c, "key"))
		w.pass(time.Millisecond)
		second := rlock(w, c, "key")
		w.wantCalls(asynclocktest.Acquire.Any, 1) // the writer's
		unlock(w, reader)
		unlock(w, second)
		w.wantUnused()
	})
}

// A store may have readers of some keys only. The lease of another key goes on.
func TestDowngradeOfAKeyWithoutReadersDoesNothing(t *testing.T) {
	story(t, func(w *world) {
		c := w.clientOf(altered{Store: w.store, shared: func(key string) error {
			if key == "shared" {
				return nil
			}
			return store.ErrUnsupported
		}})
		writer := lock(w, c, "key")
		wantError(w, errOf(writer.Downgrade(w.Context())), asynclock.ErrUnsupported)
		wantValid(w, writer)
		unlock(w, writer)
		reader := downgrade(w, lock(w, c, "shared"))
		unlock(w, reader)
	})
}

func TestDowngradeIsRepeated(t *testing.T) {
	for name, fault := range map[string]asynclocktest.Fault{
		"refused": asynclocktest.Refuse, "the answer was lost": asynclocktest.LoseReply,
	} {
		scene(t, name, func(w *world) {
			c := w.client()
			writer := lock(w, c, "key")
			w.store.Next(asynclocktest.Release.Any, fault, fault)
			reader := downgrade(w, writer)
			w.pass(2 * ttl)
			wantValid(w, reader)
			unlock(w, reader)
			w.wantUnused()
		})
	}
}

func TestDowngradeThatFailsGivesTheKeyUp(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault asynclocktest.Fault
		want  []error
	}{
		{"the context ends without an answer", asynclocktest.LoseReply, []error{asynclock.ErrOutcomeUnknown, context.DeadlineExceeded}},
		{"the store refuses", asynclocktest.Fail(asynclock.ErrDenied), []error{asynclock.ErrDenied}},
	} {
		scene(t, c.name, func(w *world) {
			ours, theirs := w.client(), w.client()
			writer := lock(w, ours, "key")
			next := w.ask(w.Context(), theirs, "key")
			local := w.ask(w.Context(), ours, "key")
			stop := w.store.Every(func(call asynclocktest.Call) bool {
				return call.Op == asynclocktest.Release && call.Release.Rest != nil
			}, c.fault)
			ctx, cancel := context.WithTimeout(w.Context(), time.Second)
			defer cancel()
			reader, err := writer.Downgrade(ctx)
			wantError(w, err, c.want...)
			wantOp(w, err, "downgrade", "key")
			if reader != nil {
				w.Error("got a lease with the error")
			}
			stop()
			unlock(w, next.has())
			unlock(w, local.has())
			w.wait()
			w.wantUnused()
		})
	}
}

func TestDowngradeOfALeaseThatIsLost(t *testing.T) {
	scene(t, "before", func(w *world) {
		c := w.client()
		writer := lock(w, c, "key", asynclock.WithMaxHold(time.Second))
		w.pass(time.Second)
		wantError(w, errOf(writer.Downgrade(w.Context())), asynclock.ErrMaxHold)
	})
	scene(t, "the store finds out", func(w *world) {
		c := w.client()
		writer := lock(w, c, "key")
		if _, err := w.store.Expire(w.Context(), "key"); err != nil {
			w.Fatal(err)
		}
		wantError(w, errOf(writer.Downgrade(w.Context())), asynclock.ErrLost)
		unlock(w, lock(w, c, "key"))
	})
	scene(t, "its time ends meanwhile", func(w *world) {
		c := w.client()
		writer := lock(w, c, "key")
		w.store.Every(asynclocktest.Any, asynclocktest.Hang)
		_, err := writer.Downgrade(w.Context())
		if err == nil {
			w.Error("got no error")
		}
	})
}

func TestLeasesThatCantBeDowngraded(t *testing.T) {
	story(t, func(w *world) {
		c := w.client(asynclock.WithReentry(true))
		refused := func(why string, l *asynclock.Lease) {
			_, err := l.Downgrade(w.Context())
			if wantError(w, err, asynclock.ErrInvalidOption); err == nil {
				w.Error(why)
			}
			wantValid(w, l)
			unlock(w, l)
		}
		refused("a reader's", rlock(w, c, "a"))
		refused("with a minimum hold", lock(w, c, "b", asynclock.WithMinHold(time.Second)))
		outer := lock(w, c, "c")
		inner, err := c.Lock(outer.Context(), "c")
		if err != nil {
			w.Fatal(err)
		}
		if _, err := outer.Downgrade(w.Context()); err == nil {
			w.Error("others joined it")
		}
		wantValid(w, outer)
		refused("it joined another", inner)
		unlock(w, outer)
		held := lock(w, c, "d")
		ended, cancel := context.WithCancel(w.Context())
		cancel()
		wantError(w, errOf(held.Downgrade(ended)), context.Canceled)
		_, err = held.Downgrade(nil) //nolint:staticcheck // a nil context is what is tested
		wantError(w, err, asynclock.ErrInvalidOption)
		wantValid(w, held)
		unlock(w, held)
		wantError(w, errOf(held.Downgrade(w.Context())), asynclock.ErrUnlocked)
		wantError(w, errOf((*asynclock.Lease)(nil).Downgrade(w.Context())), asynclock.ErrInvalidOption)
		other := w.clientOf(without(w.store, func(f *store.Features) { f.Shared = false }))
		held = lock(w, other, "e")
		wantError(w, errOf(held.Downgrade(w.Context())), asynclock.ErrUnsupported)
		wantValid(w, held)
		unlock(w, held)
	})
}

// The context of WithLock's function, and that of the lease, end with the lease. A downgrade is not their end.
func TestADowngradeByTheContextOfItsLease(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.store.Next(asynclocktest.Release.Any, asynclocktest.Refuse) // it is repeated all the same
		err := c.WithLock(w.Context(), "key", func(ctx context.Context, lease *asynclock.Lease) error {
			reader, err := lease.Downgrade(ctx)
			if err != nil {
				return err
			}
			wantValid(w, reader)
			if !errors.Is(context.Cause(ctx), asynclock.ErrUnlocked) {
				w.Errorf("the context of the writer's lease: got cause %v, want ErrUnlocked", context.Cause(ctx))
			}
			return reader.Unlock(context.WithoutCancel(ctx))
		})
		wantError(w, err, nil)
		if err != nil {
			w.Fatal(err)
		}
		w.wantUnused()
		outer := lock(w, c, "outer")
		inner, err := c.Lock(outer.Context(), "inner")
		if err != nil {
			w.Fatal(err)
		}
		reader, err := outer.Downgrade(inner.Context())
		if err != nil {
			w.Fatal(err)
		}
		unlock(w, reader)
		unlock(w, inner)
	})
}

// Downgrade says how the lease was lost meanwhile.
func TestForceDuringDowngrade(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		writer := lock(w, ours, "key")
		w.store.Next(asynclocktest.Release.Any, asynclocktest.Slow(100*time.Millisecond, 0))
		go func() {
			time.Sleep(50 * time.Millisecond)
			_, _ = theirs.ForceUnlock(context.Background(), "key", 0)
		}()
		wantError(w, errOf(writer.Downgrade(w.Context())), asynclock.ErrForced)
	})
}

// A downgrade fails. The local waiters queue whatever their limit is, because they were admitted before.
func TestWaitersAfterAFailedDowngradeAreNotTurnedAway(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		writer := lock(w, ours, "key")
		local := w.ask(w.Context(), ours, "key", asynclock.WithQueueLimit(1))
		w.ask(w.Context(), theirs, "key")
		w.store.Next(asynclocktest.Release.Any, asynclocktest.Fail(asynclock.ErrDenied))
		_, err := writer.Downgrade(w.Context())
		wantError(w, err, asynclock.ErrDenied)
		w.pass(time.Second)
		select {
		case <-local.done:
			if local.err != nil {
				w.Errorf("a local waiter failed: %v", local.err)
			}
		default:
		}
	})
}

// Close ends while Downgrade is under way.
func TestCloseDuringDowngrade(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		writer := lock(w, c, "key")
		w.store.Next(asynclocktest.Release.Any, asynclocktest.Slow(0, 900*time.Millisecond))
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			_ = c.Close(ctx)
		}()
		wantError(w, errOf(writer.Downgrade(w.Context())), asynclock.ErrClosed)
	})
}

// A renewal is under way when Downgrade is answered. The tenure opens all the same.
func TestARenewalUnderWayAtADowngradeDelaysNobody(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		writer := lock(w, c, "key")
		w.store.Next(asynclocktest.Renew.Any, asynclocktest.Slow(0, 300*time.Millisecond))
		for w.calls(asynclocktest.Renew.Any) == 0 {
			w.pass(10 * time.Millisecond)
		}
		downgrade(w, writer)
		w.pass(3 * time.Second)
		before := w.calls(asynclocktest.Acquire.Any)
		rlock(w, c, "key")
		if n := w.calls(asynclocktest.Acquire.Any) - before; n != 0 {
			w.Errorf("a reader three seconds after the downgrade: got %d requests, want none", n)
		}
	})
}

// The notification of a writer is lost before a downgrade. The first renewal after it tells of the writer.
func TestADowngradeTellsOfAWriterWhoseNotificationWasLost(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		writer := lock(w, ours, "key")
		w.store.Next(asynclocktest.Release.Any, asynclocktest.Slow(0, 50*time.Millisecond))
		w.store.NextEvent(asynclocktest.Kind(store.EventQueued), asynclocktest.Drop)
		other := w.ask(w.Context(), theirs, "key")
		r := downgrade(w, writer)
		w.pass(time.Second)
		late := w.askBy(w.Context(), ours.RLock, "key")
		late.waits()
		unlock(w, r)
		unlock(w, other.has())
		unlock(w, late.has())
	})
}
