// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store/memstore"
)

func TestZeroMultiLease(t *testing.T) {
	for name, m := range map[string]*asynclock.MultiLease{"nil": nil, "zero": {}} {
		for call, err := range map[string]error{
			"Unlock": m.Unlock(t.Context()), "UnlockChan": <-m.UnlockChan(t.Context()), "Renew": m.Renew(t.Context(), time.Minute),
			"Err": m.Err(), "the context's cause": context.Cause(m.Context()),
		} {
			if !errors.Is(err, asynclock.ErrInvalidOption) {
				t.Errorf("%s of a %s lease: got %v, want ErrInvalidOption", call, name, err)
			}
		}
		<-m.Done()
		if m.Valid(0) || m.Keys() != nil || m.Token("") != 0 || m.Tokens() != nil || !m.Deadline().IsZero() {
			t.Errorf("a %s lease looks like one that lasts", name)
		}
	}
	var none asynclock.MultiResult
	if _, err := none.Lease(); !errors.Is(err, asynclock.ErrInvalidOption) {
		t.Errorf("the zero MultiResult: got %v, want ErrInvalidOption", err)
	}
	for name, c := range map[string]*asynclock.Client{"nil": nil, "zero": {}} {
		_, err := c.LockAll(t.Context(), []string{"a"})
		_, tryErr := c.TryLockAll(t.Context(), []string{"a"})
		_, futureErr := (<-c.LockAllChan(t.Context(), []string{"a"})).Lease()
		withErr := c.WithLockAll(t.Context(), []string{"a"}, func(context.Context, *asynclock.MultiLease) error { return nil })
		for _, err := range []error{err, tryErr, futureErr, withErr} {
			if !errors.Is(err, asynclock.ErrInvalidOption) {
				t.Errorf("a %s client: got %v, want ErrInvalidOption", name, err)
			}
		}
	}
}

func TestMultiLeaseIsUnlockedOnce(t *testing.T) {
	story(t, func(w *world) {
		c := w.bounded()
		m := lockAll(w, c, []string{"a", "b"})
		first, second := m.UnlockChan(nil), m.UnlockChan(w.Context()) //nolint:staticcheck // a nil context is allowed
		unlockAll(w, m)
		for _, answer := range []<-chan error{first, second, m.UnlockChan(w.Context())} {
			wantError(w, <-answer, nil)
		}
		wantError(w, m.Err(), asynclock.ErrUnlocked)
		wantError(w, context.Cause(m.Context()), asynclock.ErrUnlocked)
		w.wantCalls(asynclocktest.Release.Any, 2)
		w.wantUnused()
	})
}

// Unlock answers in bounded time. A release without an answer is repeated in the background.
func TestMultiLeaseUnlockOfASilentStore(t *testing.T) {
	for name, c := range map[string]struct {
		timeout time.Duration // of the context
		want    []error
		within  time.Duration
	}{
		"its context lasts": {time.Hour, []error{asynclock.ErrUnreachable, asynclock.ErrOutcomeUnknown}, patience},
		"its context ends":  {time.Second, []error{context.DeadlineExceeded, asynclock.ErrOutcomeUnknown}, 1050 * time.Millisecond},
	} {
		scene(t, name, func(w *world) {
			m := lockAll(w, w.bounded(), []string{"a", "b"})
			stop := w.store.Every(asynclocktest.Release.On("b"), asynclocktest.Hang)
			ctx, cancel := context.WithTimeout(w.Context(), c.timeout)
			defer cancel()
			start := time.Now()
			err := m.Unlock(ctx)
			wantError(w, err, c.want...)
			wantOp(w, err, "unlock all", "b")
			if got := time.Since(start); got > c.within {
				w.Errorf("Unlock took %v, want at most %v", got, c.within)
			}
			stop()
			w.pass(ttl)
			w.wantUnused()
		})
	}
}

// Each part goes to its next waiter, retained keys stay, and somebody may have unlocked a part.
func TestMultiLeaseUnlocksEachPartAsALease(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(), w.bounded()
		m := lockAll(w, ours, []string{"a", "b", "c"})
		local, remote := w.ask(w.Context(), ours, "a"), w.ask(w.Context(), theirs, "b")
		unlockAll(w, m)
		unlock(w, local.has())
		unlock(w, remote.has())
		w.wantUnused()

		m = lockAll(w, ours, []string{"a", "b", "c"}, asynclock.WithRetention(time.Minute))
		unlockAll(w, m)
		w.wantHeld("a", "b", "c")
		before := w.calls(asynclocktest.Acquire.Any)
		m = lockAll(w, ours, []string{"a", "b", "c"}, asynclock.WithRetention(time.Minute))
		if got := w.calls(asynclocktest.Acquire.Any); got != before {
			w.Errorf("retained keys: %d requests, want none", got-before)
		}
		unlockAll(w, m)
		_, err := ours.TryLockAll(w.Context(), []string{"a", "b", "d"}, asynclock.WithRetention(time.Minute))
		if err != nil {
			w.Error(err)
		}
		_, err = theirs.TryLockAll(w.Context(), []string{"c"}) // which is given back when somebody wants it
		if err != nil {
			w.Error(err)
		}
	})
}

// A part that somebody unlocks by itself ends the whole.
func TestMultiLeaseEndsIfAPartIsUnlocked(t *testing.T) {
	story(t, func(w *world) {
		m := lockAll(w, w.bounded(), []string{"a", "b", "c"})
		b, ok := asynclock.LeaseFrom(m.Context(), "b")
		if !ok || b.Token() != m.Token("b") {
			w.Fatalf("LeaseFrom: got %v, want the part", b)
		}
		unlock(w, b)
		w.wantPartLost(m, "b", asynclock.ErrUnlocked)
		unlockAll(w, m)
		w.wantUnused()
	})
}

// A request for one of the keys under the lease joins it, also of all of them.
func TestMultiLeaseIsJoinedByContext(t *testing.T) {
	story(t, func(w *world) {
		c := w.bounded(asynclock.WithReentry(true))
		ctx := context.WithValue(w.Context(), w, "value")
		m, err := c.LockAll(ctx, []string{"a", "b", "c"})
		if err != nil {
			w.Fatal(err)
		}
		if got := m.Context().Value(w); got != "value" {
			w.Errorf("value of the context: got %v, want that of the request's", got)
		}
		b, err := c.Lock(m.Context(), "b")
		if err != nil {
			w.Fatal(err)
		}
		inner, err := c.LockAll(m.Context(), []string{"c", "a", "d"}) // d is free and sorts last
		if err != nil {
			w.Fatal(err)
		}
		if b.Token() != m.Token("b") || inner.Token("a") != m.Token("a") || inner.Token("c") != m.Token("c") {
			w.Errorf("tokens: got %d, %v; want those of %v", b.Token(), inner.Tokens(), m.Tokens())
		}
		unlockAll(w, m)
		w.wantHeld("a", "b", "c", "d")
		w.pass(10 * ttl)
		wantValid(w, b)
		wantError(w, inner.Err(), nil)
		unlock(w, b)
		w.wantHeld("a", "c", "d")
		unlockAll(w, inner)
		w.wantUnused()
	})
}

// A caller under a lease must not wait for a smaller key. It is told so at once.
func TestLockAllKeepsTheOrderOfKeysThatAreHeld(t *testing.T) {
	story(t, func(w *world) {
		c, other := w.bounded(asynclock.WithReentry(true)), w.bounded()
		b := lock(w, c, "b")
		_, err := c.LockAll(b.Context(), []string{"b", "a", "c"})
		wantError(w, err, asynclock.ErrLockOrder)
		wantOp(w, err, "lock all", "a")
		_, err = (<-c.LockAllChan(b.Context(), []string{"b", "a"})).Lease()
		wantError(w, err, asynclock.ErrLockOrder)
		w.wantHeld("b")

		for _, keys := range [][]string{{"b", "c"}, {"a", "c"}} { // in order; and under a lease of another key
			m, err := c.LockAll(b.Context(), keys)
			if err != nil {
				w.Fatal(err)
			}
			unlockAll(w, m)
		}
		m, err := c.TryLockAll(b.Context(), []string{"a", "b"}) // waits for nobody
		if err != nil {
			w.Fatal(err)
		}
		unlockAll(w, m)
		wantError(w, errOf(c.TryLockAll(b.Context(), []string{"a", "b"}, asynclock.WithReentry(false))), asynclock.ErrReentry)
		_, err = c.LockAll(b.Context(), []string{"b", "c"}, asynclock.WithTTL(time.Minute))
		wantError(w, err, asynclock.ErrInvalidOption)
		wantOp(w, err, "lock all", "b")
		_, err = other.TryLockAll(b.Context(), []string{"a", "b"}) // another client's lease
		wantError(w, err, asynclock.ErrHeld)
		unlock(w, b)
		w.wait() // what was had too early goes back in the background
		w.wantUnused()
	})
}

func TestWithLockAllHoldsTheKeysWhileTheFunctionRuns(t *testing.T) {
	story(t, func(w *world) {
		c := w.bounded()
		failed := errors.New("failed")
		keys := []string{"a", "b"}
		err := c.WithLockAll(w.Context(), keys, func(ctx context.Context, m *asynclock.MultiLease) error {
			w.pass(10 * ttl)
			w.wantHeld("a", "b")
			inner := c.WithLock(ctx, "a", func(_ context.Context, l *asynclock.Lease) error {
				if l.Token() != m.Token("a") {
					w.Errorf("token inside: got %d, want %d", l.Token(), m.Token("a"))
				}
				return ctx.Err()
			})
			return errors.Join(failed, inner)
		})
		if !errors.Is(err, failed) || errors.Is(err, context.Canceled) {
			w.Errorf("got %v, want the function's error", err)
		}
		w.wantUnused()
		func() {
			defer func() {
				if got := recover(); got != "out" {
					w.Errorf("recovered %v, want the function's panic", got)
				}
			}()
			_ = c.WithLockAll(w.Context(), keys, func(context.Context, *asynclock.MultiLease) error { panic("out") })
		}()
		w.wantUnused()
		wantError(w, c.WithLockAll(w.Context(), keys, nil), asynclock.ErrInvalidOption)
		wantError(w, c.WithLockAll(w.Context(), nil, func(context.Context, *asynclock.MultiLease) error {
			w.Error("called without keys")
			return nil
		}), asynclock.ErrInvalidOption)
	})
}

func TestWithLockAllReportsALoss(t *testing.T) {
	story(t, func(w *world) {
		c, other := w.bounded(), w.bounded()
		err := c.WithLockAll(w.Context(), []string{"a", "b"}, func(ctx context.Context, m *asynclock.MultiLease) error {
			w.force(other, "b")
			<-ctx.Done()
			wantError(w, context.Cause(ctx), asynclock.ErrForced)
			w.wantPartLost(m, "b", asynclock.ErrForced)
			return nil
		})
		wantError(w, err, asynclock.ErrForced)
		w.wantUnused()
		ctx, cancel := context.WithCancel(w.Context())
		err = c.WithLockAll(ctx, []string{"a", "b"}, func(ctx context.Context, m *asynclock.MultiLease) error {
			cancel()
			<-ctx.Done()
			return m.Err() // the lease does not end with the context
		})
		if err != nil {
			w.Error(err)
		}
		w.wantUnused()
	})
}

// Close waits for a MultiLease as for any lease, and ends it if its context ends first.
func TestCloseWaitsForAMultiLease(t *testing.T) {
	story(t, func(w *world) {
		c, other := w.bounded(), w.bounded()
		m := lockAll(w, c, []string{"a", "b"})
		closed := make(chan error, 1)
		go func() { closed <- c.Close(w.Context()) }()
		w.pass(10 * ttl)
		if err := m.Err(); err != nil || len(closed) > 0 {
			w.Errorf("got error %v, closed %d; want Close to wait", err, len(closed))
		}
		unlockAll(w, m)
		wantError(w, <-closed, nil)
		m = lockAll(w, other, []string{"a", "b"})
		abandon(other)
		wantError(w, m.Err(), asynclock.ErrClosed)
		wantError(w, m.Unlock(w.Context()), asynclock.ErrClosed)
		w.wantHeld("a", "b")
	})
}

var three = []string{"a", "b", "c"}

func TestRenewOfAMultiLeaseExtendsEachPart(t *testing.T) {
	story(t, func(w *world) {
		m := lockAll(w, w.client(), three, asynclock.WithRenewal(false))
		w.pass(ttl / 2)
		now := time.Now()
		if err := m.Renew(w.Context(), time.Hour); err != nil {
			w.Fatal(err)
		}
		wantTime(w, "the deadline", m.Deadline(), now.Add(trusted(time.Hour)))
		wantError(w, m.Renew(w.Context(), asynclock.MinTTL), nil)
		wantTime(w, "the deadline after a shorter TTL", m.Deadline(), now.Add(trusted(time.Hour)))
		for _, key := range three {
			w.wantCalls(asynclocktest.Renew.On(key), 2)
		}
		w.pass(trusted(time.Hour))
		wantError(w, m.Err(), asynclock.ErrExpired)
	})
}

func TestRenewOfAMultiLeaseIsOneCall(t *testing.T) {
	story(t, func(w *world) {
		st, sizes := counted(w.store)
		m := lockAll(w, w.clientOf(st), three)
		if err := m.Renew(w.Context(), time.Hour); err != nil || !slices.Equal(sizes.renewals, []int{3}) {
			w.Errorf("Renew: error %v, calls of %v renewals, want one of 3", err, sizes.renewals)
		}
	})
}

// A lane that takes long does not delay the others.
func TestRenewOfAMultiLeaseSendsTheLanesSideBySide(t *testing.T) {
	story(t, func(w *world) {
		w.store = asynclocktest.Wrap(lanes(memstore.New()))
		w.store.Every(asynclocktest.Renew.Any, asynclocktest.Slow(time.Second/2, time.Second/2))
		m := lockAll(w, w.client(), three, asynclock.WithRenewal(false))
		start := time.Now()
		wantError(w, m.Renew(w.Context(), time.Hour), nil)
		wantTime(w, "the end", time.Now(), start.Add(time.Second))
		wantTime(w, "the deadline", m.Deadline(), start.Add(trusted(time.Hour)))
	})
}

func TestRenewOfAMultiLeaseNamesThePartThatWasNotRenewed(t *testing.T) {
	story(t, func(w *world) {
		m := lockAll(w, w.client(), three, asynclock.WithRenewal(false))
		until := m.Deadline()
		w.pass(time.Second)
		w.store.Next(asynclocktest.Renew.On("b"), asynclocktest.Refuse)
		err := m.Renew(w.Context(), time.Hour)
		wantError(w, err, asynclock.ErrUnreachable)
		wantOp(w, err, "renew all", "b")
		wantTime(w, "the deadline", m.Deadline(), until)
		if err := m.Err(); err != nil {
			w.Errorf("the lease: got %v, want it to last", err)
		}
		for _, key := range []string{"a", "c"} {
			l, _ := asynclock.LeaseFrom(m.Context(), key)
			wantTime(w, "the deadline of "+key, l.Deadline(), time.Now().Add(trusted(time.Hour)))
		}
	})
}

func TestRenewOfAMultiLeaseThatTurnsOutToBeLost(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		w.store.EveryEvent(nil, func(func()) {}) // nobody is told
		m := lockAll(w, ours, three)
		if _, err := theirs.ForceUnlock(w.Context(), "b", 0); err != nil {
			w.Fatal(err)
		}
		err := m.Renew(w.Context(), time.Hour)
		wantOp(w, err, "renew all", "")
		var part *asynclock.PartError
		if wantError(w, err, asynclock.ErrExpired); !errors.As(err, &part) || part.Key != "b" {
			w.Errorf("Renew: got %v, want a PartError of b", err)
		}
		sent := w.calls(asynclocktest.Renew.Any)
		wantError(w, m.Renew(w.Context(), time.Hour), asynclock.ErrExpired)
		if got := w.calls(asynclocktest.Renew.Any); got != sent {
			w.Errorf("a lease that has ended: %d renewals, want none", got-sent)
		}
	})
}

func TestRenewOfAMultiLeaseThatMakesNoSense(t *testing.T) {
	story(t, func(w *world) {
		m := lockAll(w, w.client(), three)
		for what, err := range map[string]error{
			"a nil context": m.Renew(nil, time.Hour), //nolint:staticcheck // that is the point
			"a short TTL":   m.Renew(w.Context(), asynclock.MinTTL-1),
			"a long TTL":    m.Renew(w.Context(), asynclock.MaxTTL+1),
		} {
			if wantError(w, err, asynclock.ErrInvalidOption); w.calls(asynclocktest.Renew.Any) != 0 {
				w.Errorf("Renew with %s was sent", what)
			}
		}
		unlockAll(w, m)
		wantError(w, m.Renew(context.Background(), time.Hour), asynclock.ErrUnlocked)
	})
}

// A note belongs to one key. The lease of that key writes it, and a downgrade of it ends the whole.
func TestWhatAMultiLeaseLeavesToItsParts(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		m := lockAll(w, c, []string{"another", "key"})
		l, ok := asynclock.LeaseFrom(m.Context(), "key")
		if !ok {
			w.Fatal("no lease of the key")
		}
		setNote(w, l, "note")
		wantNote(w, c, "note", m.Token("key"))
		reader := downgrade(w, l)
		var part *asynclock.PartError
		if err := m.Err(); !errors.As(err, &part) || part.Key != "key" || !errors.Is(err, asynclock.ErrUnlocked) {
			w.Errorf("the whole after a downgrade: got %v, want a PartError of the key", err)
		}
		unlock(w, reader)
	})
}
