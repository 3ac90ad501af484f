// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

// bounded makes the next client. Its requests wait for hours and not for ever, so that a story that
// is wrong ends.
func (w *world) bounded(options ...asynclock.ClientOption) *asynclock.Client {
	w.Helper()
	return w.client(append([]asynclock.ClientOption{asynclock.WithWait(3 * time.Hour)}, options...)...)
}

// close closes a client that holds nothing by now.
func (w *world) close(c *asynclock.Client) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Hour)
	defer cancel()
	wantError(w, c.Close(ctx), nil)
}

// lockAll takes keys that can be had.
func lockAll(tb testing.TB, c *asynclock.Client, keys []string, options ...asynclock.LockOption) *asynclock.MultiLease {
	tb.Helper()
	m, err := c.LockAll(context.Background(), keys, options...)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// unlockAll ends a lease that has not ended.
func unlockAll(tb testing.TB, m *asynclock.MultiLease) {
	tb.Helper()
	if err := m.Unlock(context.Background()); err != nil {
		tb.Fatal(err)
	}
}

// askAll begins to wait for keys, and returns when it waits.
func (w *world) askAll(ctx context.Context, c *asynclock.Client, keys []string, options ...asynclock.LockOption) *pendingOf[*asynclock.MultiLease] {
	return begin(w, func() (*asynclock.MultiLease, error) { return c.LockAll(ctx, keys, options...) })
}

// wantHeld fails the test unless exactly these of the keys are held.
func (w *world) wantHeld(keys ...string) {
	w.Helper()
	w.wait()
	var got []string
	for info, err := range w.session().List(w.Context(), "") {
		if err != nil {
			w.Fatal(err)
		}
		if info.Held {
			got = append(got, info.Key)
		}
	}
	if slices.Sort(got); !slices.Equal(got, keys) {
		w.Errorf("held: got %q, want %q", got, keys)
	}
}

// numbered makes n keys.
func numbered(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("key %04d", i)
	}
	return keys
}

func TestLockAllTakesEveryKeyOnce(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(), w.bounded()
		asked := []string{"b", "ä", "a", "b"}
		m := lockAll(w, ours, asked)
		want := []string{"a", "b", "ä"} // by their bytes
		if got := m.Keys(); !slices.Equal(got, want) {
			w.Errorf("keys: got %q, want %q", got, want)
		}
		if asked[0] != "b" || asked[3] != "b" {
			w.Errorf("the caller's keys: got %q, want them unchanged", asked)
		}
		w.wantHeld(want...)
		for _, key := range want {
			_, err := theirs.TryLock(w.Context(), key)
			var held *asynclock.HeldError
			if !errors.As(err, &held) || held.Token != m.Token(key) || m.Tokens()[key] != held.Token || held.Token == 0 {
				w.Errorf("TryLock of %q: got %v, want it held with token %d", key, err, m.Token(key))
			}
		}
		if got := m.Token("another"); got != 0 || len(m.Tokens()) != 3 {
			w.Errorf("token of another key: got %d in %v, want none", got, m.Tokens())
		}
		unlockAll(w, m)
		w.wantUnused()
	})
}

// Free keys cost one call to the store, and one to give them back.
func TestLockAllOfFreeKeysIsOneCall(t *testing.T) {
	stories(t, 20, func(w *world) {
		st, sizes := counted(w.store)
		c := w.clientOf(st)
		for _, n := range []int{8, asynclock.MaxKeys} {
			sizes.acquires, sizes.releases = nil, nil
			unlockAll(w, lockAll(w, c, numbered(n)))
			if want := []int{n}; !slices.Equal(sizes.acquires, want) || !slices.Equal(sizes.releases, want) {
				w.Errorf("%d keys: got calls of %v and %v requests, want one each", n, sizes.acquires, sizes.releases)
			}
		}
		w.wantUnused()
	})
}

// Requests that make no sense are refused before the store is asked.
func TestLockAllRefusesBadRequests(t *testing.T) {
	repeated := append(numbered(asynclock.MaxKeys), numbered(asynclock.MaxKeys)...)
	for _, c := range []struct {
		name    string
		keys    []string
		options []asynclock.LockOption
		key     string // in the error
		want    error
	}{
		{"no keys", nil, nil, "", asynclock.ErrInvalidOption},
		{"an empty list", []string{}, nil, "", asynclock.ErrInvalidOption},
		{"257 keys", numbered(asynclock.MaxKeys + 1), nil, "", asynclock.ErrInvalidOption},
		{"1,000 keys", numbered(1000), nil, "", asynclock.ErrInvalidOption},
		{"an empty key among others", []string{"a", "", "b"}, nil, "", asynclock.ErrInvalidKey},
		{
			"a long key among others",
			[]string{"a", strings.Repeat("b", asynclock.MaxKeyLen+1)},
			nil,
			strings.Repeat("b", asynclock.MaxKeyLen+1), asynclock.ErrInvalidKey,
		},
		{"a key that is not UTF-8", []string{"a", "\xff"}, nil, "\xff", asynclock.ErrInvalidKey},
		{"a bad option", []string{"a", "b"}, []asynclock.LockOption{asynclock.WithTTL(0)}, "", asynclock.ErrInvalidOption},
		{"a nil option", []string{"a", "b"}, []asynclock.LockOption{nil}, "", asynclock.ErrInvalidOption},
	} {
		scene(t, c.name, func(w *world) {
			client := w.bounded()
			_, err := client.LockAll(w.Context(), c.keys, c.options...)
			wantError(w, err, c.want)
			wantOp(w, err, "lock all", c.key)
			_, err = client.TryLockAll(w.Context(), c.keys, c.options...)
			wantError(w, err, c.want)
			wantOp(w, err, "try lock all", c.key)
			_, err = (<-client.LockAllChan(w.Context(), c.keys, c.options...)).Lease()
			wantError(w, err, c.want)
			wantOp(w, err, "lock all", c.key)
			w.wantCalls(asynclocktest.Any, 0)
		})
	}
	story(t, func(w *world) { // each counts once
		m := lockAll(w, w.bounded(), repeated)
		if got := len(m.Keys()); got != asynclock.MaxKeys {
			w.Errorf("got %d keys, want %d", got, asynclock.MaxKeys)
		}
	})
}

func TestLockAllNeedsAContextAndAnOpenClient(t *testing.T) {
	story(t, func(w *world) {
		c, keys := w.bounded(), []string{"a", "b"}
		ended, cancel := context.WithCancel(w.Context())
		cancel()
		for _, bad := range []struct {
			ctx  context.Context
			want error
		}{{nil, asynclock.ErrInvalidOption}, {ended, context.Canceled}} {
			wantError(w, errOf(c.LockAll(bad.ctx, keys)), bad.want)
			wantError(w, errOf(c.TryLockAll(bad.ctx, keys)), bad.want)
			wantError(w, errOf((<-c.LockAllChan(bad.ctx, keys)).Lease()), bad.want)
		}
		wantError(w, errOf(c.TryLockAll(w.Context(), keys, asynclock.WithWait(time.Second))), asynclock.ErrInvalidOption)
		abandon(c)
		_, err := c.LockAll(w.Context(), keys)
		wantError(w, err, asynclock.ErrClosed)
		wantOp(w, err, "lock all", "a")
		wantError(w, errOf(c.TryLockAll(w.Context(), keys)), asynclock.ErrClosed)
		wantError(w, errOf((<-c.LockAllChan(w.Context(), keys)).Lease()), asynclock.ErrClosed)
		w.wantUnused()
	})
}

// TryLockAll names the first key that is held, and its holder. It holds nothing afterwards.
func TestTryLockAllTakesAllOrNone(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(), w.bounded()
		b, d := lock(w, theirs, "b", asynclock.WithDescription("they")), lock(w, theirs, "d")
		for _, try := range []func() (*asynclock.MultiLease, error){
			func() (*asynclock.MultiLease, error) {
				return ours.TryLockAll(w.Context(), []string{"d", "c", "b", "a"})
			},
			func() (*asynclock.MultiLease, error) {
				return ours.LockAll(w.Context(), []string{"d", "c", "b", "a"}, asynclock.WithWait(0))
			},
		} {
			start := time.Now()
			_, err := try()
			var held *asynclock.HeldError
			var op *asynclock.Error
			if !errors.As(err, &held) || held.Key != "b" || held.Holder != "they" || held.Token != b.Token() {
				w.Errorf("got %v, want a HeldError of b", err)
			}
			if !errors.As(err, &op) || op.Key != "b" {
				w.Errorf("got %v, want an Error of b", err)
			}
			wantTime(w, "answer", time.Now(), start)
			w.wantHeld("b", "d")
		}
		unlock(w, b)
		unlock(w, d)
		m, err := ours.TryLockAll(w.Context(), []string{"d", "c", "b", "a"})
		if err != nil {
			w.Fatal(err)
		}
		w.wantHeld("a", "b", "c", "d")
		unlockAll(w, m)
		w.wantUnused()
	})
}

// A store that fails for one key, and goes on to: the others are given back.
func TestLockAllGivesUpOnAStoreThatFailsForOneKey(t *testing.T) {
	for name, fault := range map[string]asynclocktest.Fault{
		"refuses": asynclocktest.Refuse, "hangs": asynclocktest.Hang,
	} {
		scene(t, name, func(w *world) {
			c := w.bounded()
			stop := w.store.Every(asynclocktest.Acquire.On("b"), fault)
			start := time.Now()
			_, err := c.TryLockAll(w.Context(), []string{"c", "b", "a"})
			wantError(w, err, asynclock.ErrUnreachable)
			wantOp(w, err, "try lock all", "b")
			if got := time.Since(start); got > callTimeout {
				w.Errorf("TryLockAll took %v, want one call", got)
			}
			start = time.Now()
			_, err = c.LockAll(w.Context(), []string{"c", "b", "a"})
			wantError(w, err, asynclock.ErrUnreachable)
			wantOp(w, err, "lock all", "b")
			if got := time.Since(start); got < patience || got > 2*patience {
				w.Errorf("LockAll gave up after %v, want it to have the patience of Lock, %v", got, patience)
			}
			w.wantHeld() // all was given back
			stop()
			w.pass(2 * ttl)
			w.wantUnused()
			unlockAll(w, lockAll(w, c, []string{"c", "b", "a"}))
		})
	}
}

// A store that has failed once is waited for.
func TestLockAllOutlastsATroubleOfTheStore(t *testing.T) {
	story(t, func(w *world) {
		w.store.Next(asynclocktest.Acquire.On("b"), asynclocktest.Refuse, asynclocktest.LoseReply)
		m := lockAll(w, w.bounded(), []string{"a", "b", "c"})
		w.wantHeld("a", "b", "c")
		unlockAll(w, m)
		w.pass(2 * ttl)
		w.wantUnused()
	})
}

// An error that waiting can't mend ends the request at once.
func TestLockAllFailsAtOnceIfAKeyIsDenied(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(), w.bounded()
		lock(w, theirs, "a")
		w.store.Every(asynclocktest.Acquire.On("c"), asynclocktest.Fail(asynclock.ErrDenied))
		_, err := ours.LockAll(w.Context(), []string{"a", "b", "c"})
		wantError(w, err, asynclock.ErrDenied)
		wantOp(w, err, "lock all", "c")
		w.wantHeld("a")
	})
}

// A caller holds a smaller and a larger key, and waits for the largest. When the smaller one is lost, it
// must not wait for that while it holds the larger one: whoever takes the smaller one may want the other.
func TestLockAllIsRefusedWhenALeaseThatItWasMadeUnderEnds(t *testing.T) {
	story(t, func(w *world) {
		gate, ours, theirs := w.bounded(), w.bounded(asynclock.WithReentry(true)), w.bounded()
		largest := lock(w, gate, "c")
		smaller := lock(w, ours, "a")
		larger, err := ours.Lock(smaller.Context(), "b")
		if err != nil {
			w.Fatal(err)
		}
		waiting := w.askAll(larger.Context(), ours, []string{"a", "b", "c"})
		waiting.waits()
		rival := w.askAll(w.Context(), theirs, []string{"a", "b"})
		rival.waits()
		w.force(gate, "a")
		wantError(w, waiting.ended(), asynclock.ErrLockOrder)
		unlock(w, larger)
		unlockAll(w, rival.has())
		unlock(w, largest)
	})
}

// The first try may take until the context ends. Its error is the context's all the same.
func TestLockAllSaysThatItsContextEndedInATry(t *testing.T) {
	story(t, func(w *world) {
		ours := w.client()
		held := lock(w, ours, "a")
		w.store.Every(asynclocktest.Acquire.On("b"), asynclocktest.Hang)
		ctx, cancel := context.WithTimeout(w.Context(), 100*time.Millisecond)
		defer cancel()
		wantError(w, errOf(ours.LockAll(ctx, []string{"a", "b"})), context.DeadlineExceeded, asynclock.ErrHeld)
		_, err := ours.LockAll(w.Context(), []string{"a", "b"}, asynclock.WithWait(100*time.Millisecond))
		wantError(w, err, context.DeadlineExceeded, asynclock.ErrHeld)
		unlock(w, held)
	})
}

func TestTryLockAllNamesTheFirstKeyThatItCouldNotHave(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(), w.bounded()
		held := lock(w, theirs, "a")
		w.store.Every(asynclocktest.Acquire.On("c"), asynclocktest.Fail(asynclock.ErrDenied))
		wantError(w, errOf(ours.TryLockAll(w.Context(), []string{"a", "b", "c"})), asynclock.ErrHeld)
		unlock(w, held)
	})
}

// The next request of the caller must not find the keys still held by itself.
func TestWhatLockAllGivesBackIsFreeWhenItReturns(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(), w.bounded()
		held := lock(w, theirs, "b")
		w.store.Every(asynclocktest.Release.On("a"), asynclocktest.Slow(100*time.Millisecond, 0))
		_, err := ours.TryLockAll(w.Context(), []string{"a", "b"})
		wantError(w, err, asynclock.ErrHeld)
		for _, c := range []*asynclock.Client{ours, theirs} {
			l, err := c.TryLock(w.Context(), "a")
			if err != nil {
				w.Fatalf("TryLock of a key that was given back: got %v", err)
			}
			unlock(w, l)
		}
		unlock(w, held)
	})
}

// A store that does not confirm the release keeps nobody for long.
func TestLockAllDoesNotWaitLongForWhatItGivesBack(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.bounded()
		lock(w, theirs, "b")
		w.store.Every(asynclocktest.Release.Any, asynclocktest.Hang)
		began := time.Now()
		wantError(w, errOf(ours.TryLockAll(w.Context(), []string{"a", "b"})), asynclock.ErrHeld)
		if took := time.Since(began); took > 10*time.Second {
			w.Errorf("TryLockAll took %v, want at most ten seconds", took)
		}
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		began = time.Now()
		wantError(w, errOf(ours.LockAll(ctx, []string{"a2", "b"})), context.DeadlineExceeded)
		if took := time.Since(began); took > time.Second+100*time.Millisecond {
			w.Errorf("LockAll took %v, want little more than its context's second", took)
		}
	})
}

// The whole has ended, so nobody renews its parts. A lease that joins one of them is renewed.
func TestALeaseThatJoinsAPartOfAnEndedWholeIsRenewed(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(asynclock.WithReentry(true)), w.bounded()
		first := lock(w, ours, "a")
		m, err := ours.LockAll(first.Context(), []string{"a", "b"})
		if err != nil {
			w.Fatal(err)
		}
		unlock(w, first)
		w.force(theirs, "b")
		w.pass(ttl / 2)
		joined, err := ours.Lock(context.WithoutCancel(m.Context()), "a")
		if err != nil {
			w.Fatal(err)
		}
		w.pass(10 * ttl)
		wantValid(w, joined)
		unlock(w, joined)
		m.Unlock(w.Context())
	})
}

// Without renewal, keys that are had early would be about to end when the last one comes.
func TestLockAllWithoutRenewalLasts(t *testing.T) {
	story(t, func(w *world) {
		theirs, ours := w.bounded(), w.bounded()
		held := lock(w, theirs, "b")
		waiting := w.askAll(w.Context(), ours, []string{"a", "b"}, asynclock.WithRenewal(false))
		w.pass(trusted(ttl) - 10*time.Millisecond)
		unlock(w, held)
		m := waiting.has()
		if left := time.Until(m.Deadline()); left < trusted(ttl)/2 {
			w.Errorf("the lease lasts %v, want half of the TTL at least", left)
		}
		w.pass(ttl)
		wantError(w, m.Err(), asynclock.ErrExpired)
	})
}

// The TTL of such a lease is not longer than it is needed.
func TestLockAllWithoutRenewalForAShortTime(t *testing.T) {
	story(t, func(w *world) {
		ours := w.bounded()
		options := []asynclock.LockOption{asynclock.WithMaxHold(time.Second), asynclock.WithRenewal(false)}
		for range 3 {
			unlockAll(w, lockAll(w, ours, []string{"a", "b"}, options...))
			m, err := ours.TryLockAll(w.Context(), []string{"a", "b"}, options...)
			if err != nil {
				w.Fatal(err)
			}
			unlockAll(w, m)
		}
		w.wantCalls(asynclocktest.Acquire.Any, 12)
	})
}
