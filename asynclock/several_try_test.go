// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A lane that takes long does not delay the others, neither with a try nor with an unlock.
func TestLockAllSendsTheLanesSideBySide(t *testing.T) {
	story(t, func(w *world) {
		const slow = time.Second / 2
		w.store = asynclocktest.Wrap(lanes(memstore.New()))
		w.store.Every(asynclocktest.Acquire.Any, asynclocktest.Slow(slow/2, slow/2))
		w.store.Every(asynclocktest.Release.Any, asynclocktest.Slow(slow/2, slow/2))
		start := time.Now()
		st, sizes := counted(w.store)
		m := lockAll(w, w.clientOf(st), three)
		wantTime(w, "the lease", time.Now(), start.Add(slow))
		unlockAll(w, m)
		wantTime(w, "the end", time.Now(), start.Add(2*slow))
		if want := []int{1, 1, 1}; !slices.Equal(sizes.acquires, want) || !slices.Equal(sizes.releases, want) {
			w.Errorf("got calls of %v and %v requests, want one for each lane", sizes.acquires, sizes.releases)
		}
		w.wantUnused()
	})
}

// Keys that another client only retains cost one pause, however many there are.
func TestTryLockAllAsksTwiceForRetainedKeys(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		unlockAll(w, lockAll(w, theirs, three, asynclock.WithRetention(time.Hour)))
		w.wantHeld(three...)
		start := time.Now()
		m, err := ours.TryLockAll(w.Context(), three)
		if err != nil {
			w.Fatal(err)
		}
		wantTime(w, "the lease", time.Now(), start.Add(5*time.Millisecond))
		unlockAll(w, m)
		w.wantUnused()
	})
}

// The pause before the second try ends with the context, and with the client.
func TestTryLockAllThatEndsBeforeItsSecondTry(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(w *world, ours *asynclock.Client, cancel context.CancelFunc)
		want error
	}{
		"its context ends":  {func(_ *world, _ *asynclock.Client, cancel context.CancelFunc) { cancel() }, context.Canceled},
		"the client closes": {func(w *world, ours *asynclock.Client, _ context.CancelFunc) { w.close(ours) }, asynclock.ErrClosed},
	} {
		scene(t, name, func(w *world) {
			ours, theirs := w.client(), w.client()
			w.store.EveryEvent(nil, func(func()) {}) // nobody gives the key back
			unlockAll(w, lockAll(w, theirs, []string{"b"}, asynclock.WithRetention(time.Hour)))
			ctx, cancel := context.WithCancel(w.Context())
			defer cancel()
			start := time.Now()
			time.AfterFunc(time.Millisecond, func() { c.end(w, ours, cancel) })
			wantError(w, errOf(ours.TryLockAll(ctx, three)), c.want)
			wantTime(w, "the end", time.Now(), start.Add(time.Millisecond))
			w.wantHeld("b")
		})
	}
}

// A request of another caller of the client may be under way. A try waits for its answer.
func TestTryLockAllBesideARequest(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.store.Next(asynclocktest.Acquire.On("b"), asynclocktest.Slow(time.Second/4, time.Second/4))
		p := w.ask(w.Context(), c, "b")
		start := time.Now()
		_, err := c.TryLockAll(w.Context(), three)
		wantError(w, err, asynclock.ErrHeld)
		wantOp(w, err, "try lock all", "b")
		wantTime(w, "the refusal", time.Now(), start.Add(time.Second/2))
		w.wantHeld("b")
		unlock(w, p.has())

		// The other caller may leave, and then nobody has the key.
		w.store.Next(asynclocktest.Acquire.On("b"), asynclocktest.Slow(time.Second/4, time.Second/4))
		ctx, cancel := context.WithTimeout(w.Context(), time.Second/8)
		defer cancel()
		c.LockChan(ctx, "b")
		m, err := c.TryLockAll(w.Context(), three)
		if err != nil {
			w.Fatal(err)
		}
		unlockAll(w, m)
		w.wantUnused()
	})
}

// The end of the context is the reason why there was no answer.
func TestTryLockAllSaysThatItsContextHasEnded(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.store.Every(asynclocktest.Acquire.On("b"), asynclocktest.Hang)
		ctx, cancel := context.WithTimeout(w.Context(), time.Second/8)
		defer cancel()
		_, err := c.TryLockAll(ctx, three)
		wantError(w, err, context.DeadlineExceeded)
		if errors.Is(err, asynclock.ErrUnreachable) {
			w.Errorf("got error %v, which blames the store", err)
		}
	})
}

func TestTryLockAllJoinsWhatItIsUnder(t *testing.T) {
	story(t, func(w *world) {
		c := w.client(asynclock.WithReentry(true))
		l := lock(w, c, "b")
		m, err := c.TryLockAll(l.Context(), three)
		if err != nil {
			w.Fatal(err)
		}
		if got := m.Token("b"); got != l.Token() {
			w.Errorf("token: got %d, want %d of the lease that was joined", got, l.Token())
		}
		unlockAll(w, m)
		wantValid(w, l)
		unlock(w, l)
		w.wantUnused()
	})
}

// However a key is lost while the function runs: the whole ends at once, names the key and the cause, and ends the
// function's context. The others go to nobody before the function has returned.
func TestWithLockAllEndsAtOnceHoweverAPartIsLost(t *testing.T) {
	for _, c := range []struct {
		name  string
		lose  func(w *world, other *asynclock.Client)
		after time.Duration // until the client can know
		cause error
	}{
		{"taken by force", func(w *world, other *asynclock.Client) { w.force(other, "b") }, time.Millisecond, asynclock.ErrForced},
		{"not renewed", func(w *world, _ *asynclock.Client) {
			w.store.Every(asynclocktest.Renew.On("b"), asynclocktest.Refuse)
		}, trusted(ttl), asynclock.ErrNotRenewed},
		{"expired in the store", func(w *world, _ *asynclock.Client) {
			if held, err := w.store.Expire(w.Context(), "b"); !held || err != nil {
				w.Fatalf("Expire: got %v, %v", held, err)
			}
		}, ttl / 3, asynclock.ErrExpired},
	} {
		scene(t, c.name, func(w *world) {
			ours, other := w.bounded(), w.bounded()
			start := time.Now()
			err := ours.WithLockAll(w.Context(), []string{"a", "b", "c"}, func(ctx context.Context, m *asynclock.MultiLease) error {
				c.lose(w, other)
				<-ctx.Done()
				if took := time.Since(start); took > c.after {
					w.Errorf("the context ended after %v, want %v at most", took, c.after)
				}
				w.wantPartLost(m, "b", c.cause, asynclock.ErrLost)
				var part *asynclock.PartError
				if cause := context.Cause(ctx); !errors.As(cause, &part) || part.Key != "b" || !errors.Is(cause, c.cause) {
					w.Errorf("cause of the function's context: got %v, want a PartError of b for %v", cause, c.cause)
				}
				for _, key := range []string{"a", "c"} {
					wantError(w, errOf(other.TryLock(w.Context(), key)), asynclock.ErrHeld)
				}
				return nil
			})
			wantError(w, err, c.cause, asynclock.ErrLost)
			w.wantHeldAmong([]string{"a", "c"})
		})
	}
}

// wantHeldAmong checks which of these keys are held.
func (w *world) wantHeldAmong(keys []string, want ...string) {
	w.Helper()
	w.wait()
	var got []string
	for _, key := range keys {
		if w.inspect(key).Held {
			got = append(got, key)
		}
	}
	if !slices.Equal(got, want) {
		w.Errorf("held: got %q, want %q", got, want)
	}
}

// A key that can't be renewed while another is waited for is taken again, with those behind it.
func TestLockAllTakesAKeyAgainThatWasNotRenewed(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(), w.bounded()
		d := lock(w, theirs, "d")
		stop := w.store.Every(asynclocktest.Renew.On("b"), asynclocktest.Refuse)
		p := w.askAll(w.Context(), ours, []string{"d", "c", "b", "a"})
		old := make(map[string]int64)
		for _, key := range []string{"a", "b", "c"} {
			old[key] = w.inspect(key).Token
		}
		w.pass(trusted(ttl))
		p.waits()
		w.wantHeld("a", "b", "c", "d")
		for key, token := range map[string]int64{"b": old["b"], "c": old["c"]} {
			if got := w.inspect(key).Token; got <= token {
				w.Errorf("token of %q: got %d, want it taken again, beyond %d", key, got, token)
			}
		}
		stop()
		unlock(w, d)
		m := p.has()
		if got := m.Tokens(); got["a"] != old["a"] || got["b"] <= old["b"] || got["c"] <= old["c"] {
			w.Errorf("tokens: got %v, want new ones from b on, before %v", got, old)
		}
		w.pass(10 * ttl)
		unlockAll(w, m)
		w.wantUnused()
	})
}

// TryLockAll is one call to take the keys, and one to give back those that it could have. They are held for a round
// trip in between.
func TestTryLockAllHoldsTheOthersForARoundTrip(t *testing.T) {
	story(t, func(w *world) {
		const way = 10 * time.Millisecond
		theirs := w.bounded()
		lock(w, theirs, "b")
		st, sizes := counted(w.store)
		ours := w.clientOf(st)
		for _, request := range []asynclocktest.Match{asynclocktest.Acquire.From(1), asynclocktest.Release.From(1)} {
			w.store.Every(request, asynclocktest.Slow(way, way))
		}
		start := time.Now()
		done := make(chan error, 1)
		go func() {
			_, err := ours.TryLockAll(w.Context(), []string{"a", "b", "c"})
			done <- err
		}()
		w.pass(way + time.Millisecond)
		w.wantHeld("a", "b", "c")
		w.pass(2*way - 2*time.Millisecond)
		w.wantHeld("a", "b", "c")
		w.pass(2 * time.Millisecond)
		w.wantHeld("b")
		wantError(w, <-done, asynclock.ErrHeld)
		wantTime(w, "the answer", time.Now(), start.Add(4*way))
		if !slices.Equal(sizes.acquires, []int{3}) || !slices.Equal(sizes.releases, []int{2}) {
			w.Errorf("calls: got acquires of %v and releases of %v keys, want one of 3 and one of 2", sizes.acquires, sizes.releases)
		}
	})
}

// A lane of the store that hangs: the request has the patience of Lock. Its keys elsewhere are free when it returns.
// Its keys in that lane are given back in the background, as soon as the lane answers.
func TestLockAllGivesUpOnALaneThatHangs(t *testing.T) {
	const (
		ttl       = time.Minute
		patience  = 10 * time.Second // of Lock, with that TTL
		heartbeat = 3 * time.Second
	)
	story(t, func(w *world) {
		w.store = asynclocktest.Wrap(lanes(memstore.New()))
		ours, theirs := w.bounded(), w.bounded()
		held := lock(w, theirs, "b2", asynclock.WithTTL(time.Hour))
		p := w.askAll(w.Context(), ours, []string{"a1", "b1", "b2", "c1"}, asynclock.WithTTL(ttl))
		p.waits()
		stop := w.store.Every(func(call asynclocktest.Call) bool { return call.Client == 0 && strings.HasPrefix(call.Key, "b") }, asynclocktest.Hang)
		start := time.Now()
		<-p.done
		err := p.ended()
		wantError(w, err, asynclock.ErrUnreachable)
		wantOp(w, err, "lock all", "b2")
		// It finds out with its next heartbeat. It waits for what it gives back as long as Unlock does, and no longer.
		if took := time.Since(start); took < 2*patience || took > 2*heartbeat+2*patience {
			w.Errorf("LockAll gave up after %v, want the patience of Lock, %v, and the same again for what it gives back", took, patience)
		}
		for _, key := range []string{"a1", "c1"} {
			l, err := theirs.TryLock(w.Context(), key)
			if err != nil {
				w.Fatalf("TryLock of %q: got %v, want it free", key, err)
			}
			unlock(w, l)
		}
		wantError(w, errOf(theirs.TryLock(w.Context(), "b1")), asynclock.ErrHeld)
		stop()
		w.pass(patience + time.Second) // before its TTL is over
		l, err := theirs.TryLock(w.Context(), "b1")
		if err != nil {
			w.Fatalf("TryLock after the lane came back: got %v, want it free", err)
		}
		unlock(w, l)
		unlock(w, held)
	})
}

// A key that is listed twice counts once in each call, also under a lease of it.
func TestAKeyThatIsListedTwiceCountsOnce(t *testing.T) {
	story(t, func(w *world) {
		c, twice := w.bounded(asynclock.WithReentry(true)), []string{"a", "b", "a"}
		outer, ctx := (*asynclock.Lease)(nil), w.Context()
		for range 2 {
			for name, call := range map[string]func() (*asynclock.MultiLease, error){
				"LockAll":     func() (*asynclock.MultiLease, error) { return c.LockAll(ctx, twice) },
				"TryLockAll":  func() (*asynclock.MultiLease, error) { return c.TryLockAll(ctx, twice) },
				"LockAllChan": func() (*asynclock.MultiLease, error) { return (<-c.LockAllChan(ctx, twice)).Lease() },
			} {
				m, err := call()
				if err != nil {
					w.Fatalf("%s: got %v, want both keys", name, err)
				}
				if got := m.Keys(); !slices.Equal(got, []string{"a", "b"}) || len(m.Tokens()) != 2 {
					w.Errorf("%s: got keys %q with tokens %v, want each once", name, got, m.Tokens())
				}
				unlockAll(w, m)
				if outer == nil {
					w.wantUnused()
				}
			}
			if outer == nil {
				outer = lock(w, c, "a")
				ctx = outer.Context()
			}
		}
		unlock(w, outer)
		w.wantUnused()
	})
}
