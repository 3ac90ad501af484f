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

// An upgrade is refused at once, without a request, also with a bound on the wait. So two readers that both
// want to write don't wait for each other, and a writer that waits makes no difference.
func TestAnUpgradeIsRefusedAtOnce(t *testing.T) {
	bothWays(t, func(w *world, reentry asynclock.LockOption) {
		ours, theirs := w.client(reentry), w.client(reentry)
		readers := map[*asynclock.Client]*asynclock.Lease{ours: rlock(w, ours, "key"), theirs: rlock(w, theirs, "key")}
		writer := w.ask(w.Context(), w.client(), "key")
		start, before := time.Now(), w.calls(asynclocktest.Any)
		for c, reader := range readers {
			for name, call := range map[string]func(ctx context.Context) error{
				"Lock": func(ctx context.Context) error { _, err := c.Lock(ctx, "key"); return err },
				"Lock with a bound": func(ctx context.Context) error {
					_, err := c.Lock(ctx, "key", asynclock.WithWait(time.Minute))
					return err
				},
				"TryLock":    func(ctx context.Context) error { _, err := c.TryLock(ctx, "key"); return err },
				"LockChan":   func(ctx context.Context) error { _, err := (<-c.LockChan(ctx, "key")).Lease(); return err },
				"LockAll":    func(ctx context.Context) error { _, err := c.LockAll(ctx, []string{"key", "other"}); return err },
				"TryLockAll": func(ctx context.Context) error { _, err := c.TryLockAll(ctx, []string{"key", "other"}); return err },
				"WithLock": func(ctx context.Context) error {
					return c.WithLock(ctx, "key", func(context.Context, *asynclock.Lease) error { return nil })
				},
			} {
				if err := call(reader.Context()); !errors.Is(err, asynclock.ErrUpgrade) {
					w.Errorf("%s under a reader: got %v, want ErrUpgrade", name, err)
				}
			}
			wantValid(w, reader)
		}
		wantTime(w, "the last refusal", time.Now(), start)
		if n := w.calls(asynclocktest.Any) - before; n != 0 {
			w.Errorf("requests: got %d, want none", n)
		}
		for _, reader := range readers {
			writer.waits()
			unlock(w, reader)
		}
		unlock(w, writer.has())
	})
}

// Under a reader's lease that was lost, every call waits like any other, and joins nothing.
func TestUnderAReaderThatWasLostAnythingWaits(t *testing.T) {
	bothWays(t, func(w *world, reentry asynclock.LockOption) {
		ours, theirs := w.client(reentry), w.client()
		reader := rlock(w, ours, "key")
		under := context.WithoutCancel(reader.Context())
		w.force(theirs, "key")
		wantLost(w, reader, asynclock.ErrForced)
		writer := lock(w, theirs, "key")
		_, err := ours.TryLock(under, "key")
		wantError(w, err, asynclock.ErrHeld)
		_, err = ours.TryRLock(under, "key")
		wantError(w, err, asynclock.ErrHeld)
		var waiting []*pending
		for _, call := range []acquire{
			ours.Lock,
			ours.RLock,
			wants(semaphore(w, ours, 1), 1),
			func(ctx context.Context, key string, options ...asynclock.LockOption) (*asynclock.Lease, error) {
				return (<-ours.LockChan(ctx, key, options...)).Lease()
			},
			func(ctx context.Context, key string, options ...asynclock.LockOption) (*asynclock.Lease, error) {
				return (<-ours.RLockChan(ctx, key, options...)).Lease()
			},
		} {
			waiting = append(waiting, w.askBy(under, call, "key"))
		}
		for _, p := range waiting {
			p.waits()
		}
		unlock(w, writer)
		for i, mode := range []asynclock.Mode{asynclock.Exclusive, asynclock.Shared, asynclock.Permits, asynclock.Exclusive, asynclock.Shared} {
			l := waiting[i].has()
			if l.Mode() != mode {
				w.Errorf("waiter %d: got mode %v, want %v", i, l.Mode(), mode)
			}
			unlock(w, l)
		}
	})
}

// A TryLock beside readers is refused, and told how many they are, with the token that their leases have. A client
// that reads itself refuses it without a request.
func TestATryLockBesideReaders(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(asynclock.WithDescription("host 7")), w.client()
		readers := []*asynclock.Lease{rlock(w, ours, "key"), rlock(w, w.client(), "key"), rlock(w, w.client(), "key")}
		_, err := theirs.TryLock(w.Context(), "key")
		var held *asynclock.HeldError
		if !errors.As(err, &held) || held.Holder != "3 readers" || held.Token != readers[0].Token() {
			w.Errorf("beside readers elsewhere: got %#v, want 3 readers with token %d", err, readers[0].Token())
		}
		before := w.calls(asynclocktest.Any)
		_, err = ours.TryLock(w.Context(), "key")
		if !errors.As(err, &held) || held.Holder != "host 7" || held.Token != readers[0].Token() {
			w.Errorf("beside a reader of this client: got %#v, want host 7 with token %d", err, readers[0].Token())
		}
		if n := w.calls(asynclocktest.Any) - before; n != 0 {
			w.Errorf("requests beside a reader of this client: got %d, want none", n)
		}
		for _, l := range readers {
			wantValid(w, l)
			unlock(w, l)
		}
	})
}

// The key is not given back before the last reader's unlock, while one more of the client is on its way.
func TestTheLastReaderLeavesWhileTheNextIsOnItsWay(t *testing.T) {
	story(t, func(w *world) {
		farAway(w)
		ours := w.client()
		var readers []*asynclock.Lease
		for range 10 {
			readers = append(readers, rlock(w, ours, "key"))
		}
		received := <-ours.RLockChan(w.Context(), "key")
		other := w.askBy(w.Context(), ours.RLock, "key", asynclock.WithTTL(ttl/2)) // asks the store
		time.Sleep(oneWay / 2)
		writer := w.ask(w.Context(), w.client(), "key")
		for _, l := range readers {
			unlock(w, l)
		}
		w.pass(time.Second)
		next := other.has()
		wantValid(w, next)
		unlock(w, next)
		writer.waits()
		last, err := received.Lease()
		if err != nil {
			w.Fatal(err)
		}
		wantValid(w, last)
		writer.waits()
		unlock(w, last)
		unlock(w, writer.get())
	})
}

// Close waits for each reader by itself.
func TestCloseWaitsForEachReader(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		readers := []*asynclock.Lease{rlock(w, c, "key"), rlock(w, c, "key"), rlock(w, c, "key")}
		closed := make(chan error, 1)
		go func() { closed <- c.Close(context.Background()) }()
		for _, l := range readers {
			w.pass(2 * ttl)
			if len(closed) > 0 {
				w.Fatalf("Close returned beside a reader's lease: %v", <-closed)
			}
			wantValid(w, l)
			unlock(w, l)
		}
		w.wait()
		if len(closed) == 0 {
			w.Fatal("Close has not returned after the last reader's unlock")
		}
		wantError(w, <-closed, nil)
		w.wantUnused()
	})
}
