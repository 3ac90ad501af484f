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

// rlock takes a key that can be had by a reader.
func rlock(tb testing.TB, c *asynclock.Client, key string, options ...asynclock.LockOption) *asynclock.Lease {
	tb.Helper()
	l, err := c.RLock(context.Background(), key, options...)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

func TestReadersHoldAKeyTogether(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		before := lock(w, ours, "key")
		unlock(w, before)
		one, other := rlock(w, ours, "key"), rlock(w, theirs, "key")
		if one.Token() != other.Token() || one.Token() <= before.Token() {
			w.Errorf("tokens: got %d and %d after a writer's %d, want equal and larger ones", one.Token(), other.Token(), before.Token())
		}
		if one.Mode() != asynclock.Shared || before.Mode() != asynclock.Exclusive {
			w.Errorf("modes: got %v of a reader and %v of a writer", one.Mode(), before.Mode())
		}
		writer := w.ask(w.Context(), ours, "key")
		unlock(w, one)
		writer.waits()
		unlock(w, other)
		after := writer.has()
		if after.Token() <= one.Token() {
			w.Errorf("the writer's token: got %d, want more than the readers' %d", after.Token(), one.Token())
		}
		unlock(w, after)
		w.wait()
		w.wantUnused()
	})
}

// S2: a reader joins the readers of its client without the store, and the last one gives the key back.
func TestOneMoreReaderCostsNoRequest(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		first := rlock(w, c, "key")
		second, err := c.TryRLock(w.Context(), "key")
		if err != nil {
			w.Fatal(err)
		}
		third := claim(w, c.RLockChan(w.Context(), "key"))
		w.wantCalls(asynclocktest.Acquire.Any, 1)
		for _, l := range []*asynclock.Lease{first, third} {
			unlock(w, l)
			wantValid(w, second)
		}
		w.wantCalls(asynclocktest.Release.Any, 0)
		unlock(w, second)
		w.wantUnused()
	})
}

// S3: a reader does not join once its client knows of a writer, here or elsewhere.
func TestAReaderQueuesBehindAWriter(t *testing.T) {
	for _, c := range []struct {
		name   string
		writer func(ours, theirs *asynclock.Client) *asynclock.Client
	}{
		{"of the same client", func(ours, _ *asynclock.Client) *asynclock.Client { return ours }},
		{"of another client", func(_, theirs *asynclock.Client) *asynclock.Client { return theirs }},
	} {
		scene(t, c.name, func(w *world) {
			ours, theirs := w.client(), w.client()
			reader := rlock(w, ours, "key")
			writer := w.ask(w.Context(), c.writer(ours, theirs), "key")
			late := w.askBy(w.Context(), ours.RLock, "key")
			late.waits()
			if _, err := ours.TryRLock(w.Context(), "key"); err == nil {
				w.Error("TryRLock past a writer: got a lease")
			} else {
				wantError(w, err, asynclock.ErrHeld)
				wantOp(w, err, "try rlock", "key")
			}
			unlock(w, reader)
			held := writer.has()
			late.waits()
			unlock(w, held)
			unlock(w, late.has())
			w.wait()
			w.wantUnused()
		})
	}
}

// S4: one grant serves the first waiter and the readers directly behind it, and nobody further behind.
// They were there before the client could hear of a writer elsewhere.
func TestOneGrantServesTheReadersInARow(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		held := lock(w, theirs, "key")
		var readers []*pending
		for range 3 {
			readers = append(readers, w.askBy(w.Context(), ours.RLock, "key"))
		}
		elsewhere := w.ask(w.Context(), w.client(), "key")
		writer := w.ask(w.Context(), ours, "key")
		last := w.askBy(w.Context(), ours.RLock, "key")
		before := w.calls(asynclocktest.Acquire.Any)
		unlock(w, held)
		for _, r := range readers {
			r.has()
		}
		if n := w.calls(asynclocktest.Acquire.Any) - before; n != 1 {
			w.Errorf("requests: got %d, want 1, of the writer behind the readers", n)
		}
		writer.waits()
		last.waits()
		for _, r := range readers {
			elsewhere.waits()
			unlock(w, r.has())
		}
		unlock(w, elsewhere.has())
		unlock(w, writer.has())
		unlock(w, last.has())
	})
}

// S7: readers on other terms, or with an end of their own, have another owner in the store.
func TestReadersOnOtherTermsHaveTheirOwnHolding(t *testing.T) {
	for _, c := range []struct {
		name   string
		option asynclock.LockOption
	}{
		{"another TTL", asynclock.WithTTL(ttl / 2)},
		{"a maximum hold", asynclock.WithMaxHold(time.Second)},
		{"no renewal", asynclock.WithRenewal(false)},
	} {
		scene(t, c.name, func(w *world) {
			client := w.client()
			usual := rlock(w, client, "key")
			other := rlock(w, client, "key", c.option)
			third := rlock(w, client, "key", c.option)
			if n := len(w.inspect("key").Holders); n < 2 {
				w.Errorf("holders in the store: got %d, want 2 at least", n)
			}
			w.pass(2 * ttl)
			wantValid(w, usual)
			for _, l := range []*asynclock.Lease{other, third} {
				if err := l.Unlock(w.Context()); err != nil {
					wantError(w, err, asynclock.ErrLost)
				}
			}
			wantValid(w, usual)
			unlock(w, usual)
			w.wait()
			w.wantUnused()
		})
	}
}

func TestAReadersMaximumHoldIsItsOwn(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		usual := rlock(w, c, "key")
		bound := rlock(w, c, "key", asynclock.WithMaxHold(4*time.Second))
		w.pass(2 * time.Second)
		same := rlock(w, c, "key", asynclock.WithMaxHold(4*time.Second))
		later := claim(w, c.RLockChan(w.Context(), "key", asynclock.WithMaxHold(time.Minute)))
		w.pass(2 * time.Second)
		select { // not Err, which looks at the time itself
		case <-bound.Done():
		default:
			w.Error("nobody has noticed the end of a reader's maximum hold")
		}
		wantLost(w, bound, asynclock.ErrMaxHold)
		wantValid(w, same)
		w.pass(2 * time.Second)
		wantLost(w, same, asynclock.ErrMaxHold)
		w.pass(time.Minute - 4*time.Second)
		wantLost(w, later, asynclock.ErrMaxHold)
		wantValid(w, usual)
		unlock(w, usual)
	})
}

func TestReadersLoseAKeyTogether(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		readers := []*asynclock.Lease{rlock(w, ours, "key"), rlock(w, ours, "key"), rlock(w, theirs, "key")}
		unclaimed := ours.RLockChan(w.Context(), "key")
		w.force(theirs, "key")
		for _, l := range readers {
			wantLost(w, l, asynclock.ErrForced)
		}
		next := claim(w, unclaimed) // it waited again, because nobody had received it
		if next.Token() <= readers[0].Token() {
			w.Errorf("token after the force: got %d, want more than %d", next.Token(), readers[0].Token())
		}
		unlock(w, next)
		for _, l := range readers {
			wantError(w, l.Unlock(w.Context()), asynclock.ErrForced)
		}
		w.wait()
		w.wantUnused()
	})
}

// A reader that is cut off from the store loses its lease in time, and a writer elsewhere gets the key.
func TestReadersThatAreCutOffEndInTime(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		one, other := rlock(w, ours, "key"), rlock(w, ours, "key")
		writer := w.ask(w.Context(), theirs, "key")
		w.store.Cut(0)
		writer.get()
		for _, l := range []*asynclock.Lease{one, other} {
			wantLost(w, l, asynclock.ErrNotRenewed)
		}
	})
}

// A reader's lease is renewed for as long as one reader of its client is left.
func TestATenureIsRenewedWhileAReaderIsLeft(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		first := rlock(w, c, "key")
		second := rlock(w, c, "key")
		w.pass(3 * ttl)
		unlock(w, first)
		w.pass(3 * ttl)
		wantValid(w, second)
		wantError(w, second.Renew(w.Context(), 2*ttl), nil)
		unlock(w, second)
	})
}

func TestRetentionKeepsAKeyForReaders(t *testing.T) {
	story(t, func(w *world) {
		retain := asynclock.WithRetention(time.Minute)
		ours, theirs := w.client(retain), w.client()
		first := rlock(w, ours, "key")
		unlock(w, first)
		again := rlock(w, ours, "key")
		if n := w.calls(asynclocktest.Acquire.Any); n != 1 || again.Token() != first.Token() {
			w.Errorf("the key again: got %d requests, token %d; want 1 and %d", n, again.Token(), first.Token())
		}
		unlock(w, again)
		beside := rlock(w, theirs, "key") // readers elsewhere don't disturb it
		unlock(w, rlock(w, ours, "key"))
		w.wantCalls(asynclocktest.Acquire.Any, 2)
		unlock(w, beside)
		unlock(w, w.ask(w.Context(), theirs, "key").has()) // a writer gets it at once
		w.wait()
		w.wantUnused()
	})
}

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
		wantError(w, errOf(ours.TryLock(under, "key")), asynclock.ErrHeld)
		wantError(w, errOf(ours.TryRLock(under, "key")), asynclock.ErrHeld)
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
