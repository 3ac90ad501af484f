// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A nestedCall is a way to take "key". It gives the key back at once.
type nestedCall struct {
	name string
	mode asynclock.Mode
	call func(ctx context.Context, c *asynclock.Client) error
}

// nestedCalls are all ways to take a key.
var nestedCalls = []nestedCall{
	{"Lock", asynclock.Exclusive, func(ctx context.Context, c *asynclock.Client) error { return ended(c.Lock(ctx, "key")) }},
	{"TryLock", asynclock.Exclusive, func(ctx context.Context, c *asynclock.Client) error { return ended(c.TryLock(ctx, "key")) }},
	{"Lock with WithWait(0)", asynclock.Exclusive, func(ctx context.Context, c *asynclock.Client) error {
		return ended(c.Lock(ctx, "key", asynclock.WithWait(0)))
	}},
	{"LockChan", asynclock.Exclusive, func(ctx context.Context, c *asynclock.Client) error {
		return ended((<-c.LockChan(ctx, "key")).Lease())
	}},
	{"LockEach", asynclock.Exclusive, func(ctx context.Context, c *asynclock.Client) error {
		return ended((<-c.LockEach(ctx, slices.Values([]string{"key"}))).Lease())
	}},
	{"WithLock", asynclock.Exclusive, func(ctx context.Context, c *asynclock.Client) error { return c.WithLock(ctx, "key", nothing) }},
	{"Do", asynclock.Exclusive, func(ctx context.Context, c *asynclock.Client) error {
		_, err := asynclock.Do(ctx, c, "key", func(context.Context, *asynclock.Lease) (int, error) { return 0, nil })
		return err
	}},
	{"LockAll", asynclock.Exclusive, func(ctx context.Context, c *asynclock.Client) error {
		return allEnded(c.LockAll(ctx, []string{"key", "a", "z"}))
	}},
	{"TryLockAll", asynclock.Exclusive, func(ctx context.Context, c *asynclock.Client) error {
		return allEnded(c.TryLockAll(ctx, []string{"key", "a", "z"}))
	}},
	{"LockAllChan", asynclock.Exclusive, func(ctx context.Context, c *asynclock.Client) error {
		return allEnded((<-c.LockAllChan(ctx, []string{"key", "a", "z"})).Lease())
	}},
	{"WithLockAll", asynclock.Exclusive, func(ctx context.Context, c *asynclock.Client) error {
		return c.WithLockAll(ctx, []string{"key", "z"}, func(context.Context, *asynclock.MultiLease) error { return nil })
	}},
	{"RLock", asynclock.Shared, func(ctx context.Context, c *asynclock.Client) error { return ended(c.RLock(ctx, "key")) }},
	{"TryRLock", asynclock.Shared, func(ctx context.Context, c *asynclock.Client) error { return ended(c.TryRLock(ctx, "key")) }},
	{"RLockChan", asynclock.Shared, func(ctx context.Context, c *asynclock.Client) error {
		return ended((<-c.RLockChan(ctx, "key")).Lease())
	}},
	{"WithRLock", asynclock.Shared, func(ctx context.Context, c *asynclock.Client) error { return c.WithRLock(ctx, "key", nothing) }},
	{"Acquire", asynclock.Permits, ofSemaphore(func(ctx context.Context, s *asynclock.Semaphore) error { return ended(s.Acquire(ctx, 1)) })},
	{"TryAcquire", asynclock.Permits, ofSemaphore(func(ctx context.Context, s *asynclock.Semaphore) error { return ended(s.TryAcquire(ctx, 1)) })},
	{"AcquireChan", asynclock.Permits, ofSemaphore(func(ctx context.Context, s *asynclock.Semaphore) error {
		return ended((<-s.AcquireChan(ctx, 1)).Lease())
	})},
	{"With", asynclock.Permits, ofSemaphore(func(ctx context.Context, s *asynclock.Semaphore) error { return s.With(ctx, 1, nothing) })},
}

func nothing(context.Context, *asynclock.Lease) error { return nil }

// ended unlocks the lease that a call has returned, or returns the call's error.
func ended(l *asynclock.Lease, err error) error {
	if err != nil {
		return err
	}
	return l.Unlock(context.Background())
}

// allEnded is ended for several keys.
func allEnded(m *asynclock.MultiLease, err error) error {
	if err != nil {
		return err
	}
	return m.Unlock(context.Background())
}

func ofSemaphore(call func(ctx context.Context, s *asynclock.Semaphore) error) func(context.Context, *asynclock.Client) error {
	return func(ctx context.Context, c *asynclock.Client) error {
		s, err := c.Semaphore("key", 3)
		if err != nil {
			return err
		}
		return call(ctx, s)
	}
}

// outerLeases are all ways to be under a lease of "key", in each mode. They call fn with a context that was made
// under it.
var outerLeases = []struct {
	name string
	mode asynclock.Mode
	run  func(w *world, c *asynclock.Client, fn func(ctx context.Context)) error
}{
	{"WithLock", asynclock.Exclusive, func(w *world, c *asynclock.Client, fn func(context.Context)) error {
		return c.WithLock(w.Context(), "key", func(ctx context.Context, _ *asynclock.Lease) error { fn(ctx); return nil })
	}},
	{"the context of a lease", asynclock.Exclusive, func(w *world, c *asynclock.Client, fn func(context.Context)) error {
		l := lock(w, c, "key")
		fn(context.WithValue(l.Context(), w, "made from it"))
		return l.Unlock(w.Context())
	}},
	{"a lease of another key inside", asynclock.Exclusive, func(w *world, c *asynclock.Client, fn func(context.Context)) error {
		return c.WithLock(w.Context(), "key", func(ctx context.Context, _ *asynclock.Lease) error {
			return c.WithLock(ctx, "inner", func(ctx context.Context, _ *asynclock.Lease) error { fn(ctx); return nil })
		})
	}},
	{"a detached context", asynclock.Exclusive, func(w *world, c *asynclock.Client, fn func(context.Context)) error {
		return c.WithLock(w.Context(), "key", func(ctx context.Context, _ *asynclock.Lease) error {
			fn(context.WithoutCancel(ctx))
			return nil
		})
	}},
	{"WithLockAll", asynclock.Exclusive, func(w *world, c *asynclock.Client, fn func(context.Context)) error {
		return c.WithLockAll(w.Context(), []string{"another", "key"}, func(ctx context.Context, _ *asynclock.MultiLease) error {
			fn(ctx)
			return nil
		})
	}},
	{"WithRLock", asynclock.Shared, func(w *world, c *asynclock.Client, fn func(context.Context)) error {
		return c.WithRLock(w.Context(), "key", func(ctx context.Context, _ *asynclock.Lease) error { fn(ctx); return nil })
	}},
	{"what Downgrade returned", asynclock.Shared, func(w *world, c *asynclock.Client, fn func(context.Context)) error {
		return c.WithLock(w.Context(), "key", func(ctx context.Context, l *asynclock.Lease) error {
			reader, err := l.Downgrade(ctx)
			if err != nil {
				return err
			}
			fn(reader.Context())
			return reader.Unlock(w.Context())
		})
	}},
	{"what was before Downgrade", asynclock.Shared, func(w *world, c *asynclock.Client, fn func(context.Context)) error {
		return c.WithLock(w.Context(), "key", func(ctx context.Context, l *asynclock.Lease) error {
			reader, err := l.Downgrade(ctx)
			if err != nil {
				return err
			}
			fn(context.WithoutCancel(ctx)) // the lease that it was made under is now the reader's
			return reader.Unlock(w.Context())
		})
	}},
	{"With", asynclock.Permits, func(w *world, c *asynclock.Client, fn func(context.Context)) error {
		return semaphore(w, c, 3).With(w.Context(), 1, func(ctx context.Context, _ *asynclock.Lease) error { fn(ctx); return nil })
	}},
}

// nestedError returns what a call gets under a lease of its key: nil if it gets a lease.
func nestedError(outer, inner asynclock.Mode, reentry bool) error {
	switch {
	case outer == asynclock.Permits && inner == asynclock.Permits: // further permits
		return nil
	case inner == asynclock.Permits, outer != asynclock.Exclusive && outer != inner:
		return asynclock.ErrUpgrade
	case !reentry:
		return asynclock.ErrReentry
	}
	return nil
}

// A call under a lease of its key never waits for that lease. With re-entry it joins, if it can. Otherwise it fails
// at once and without a request, says what to do, and leaves the lease as it was.
func TestACallUnderALeaseOfItsKeyFailsAtOnceOrJoins(t *testing.T) {
	for _, outer := range outerLeases {
		t.Run(outer.name, func(t *testing.T) {
			for _, reentry := range []bool{false, true} {
				for _, inner := range nestedCalls {
					if reentry && strings.HasPrefix(inner.name, "LockAll") {
						continue // the order of keys counts then, see TestLockAllKeepsTheOrderOfKeysThatAreHeld
					}
					want := nestedError(outer.mode, inner.mode, reentry)
					name := inner.name
					if reentry {
						name += " with re-entry"
					}
					scene(t, name, func(w *world) {
						c, other := w.client(asynclock.WithReentry(reentry)), w.client()
						err := outer.run(w, c, func(ctx context.Context) {
							w.wantNested(ctx, c, inner, want)
							wantError(w, errOf(other.TryLock(w.Context(), "key")), asynclock.ErrHeld)
						})
						if err != nil {
							w.Errorf("the outer lease: got %v, want it to last", err)
						}
						w.wait()
						w.wantUnused()
					})
				}
			}
		})
	}
}

// wantNested makes a call under a lease of its key, which must fail with want, at once.
func (w *world) wantNested(ctx context.Context, c *asynclock.Client, inner nestedCall, want error) {
	w.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	start, before := time.Now(), w.calls(asynclocktest.Any)
	err := inner.call(ctx, c)
	if want == nil {
		if err != nil {
			w.Errorf("got %v, want a lease", err)
		}
		return
	}
	wantError(w, err, asynclock.ErrReentry, want)
	if errors.Is(err, asynclock.ErrUpgrade) != (want == asynclock.ErrUpgrade) { //nolint:errorlint // one of two sentinels
		w.Errorf("got %v, want %v", err, want)
	}
	var named *asynclock.Error
	if !errors.As(err, &named) || named.Key != "key" || !strings.Contains(err.Error(), "unlock that first") {
		w.Errorf("got %v, want an error that names the key and says what to do", err)
	}
	wantTime(w, "the refusal", time.Now(), start)
	if n := w.calls(asynclocktest.Any) - before; n != 0 {
		w.Errorf("requests: got %d, want none", n)
	}
}

// Each call says by itself whether it joins. It needs no consent of the lease, and does not inherit the answer.
func TestReentryIsAskedForByEachCall(t *testing.T) {
	story(t, func(w *world) {
		under := func(l *asynclock.Lease) context.Context {
			ctx, cancel := context.WithTimeout(l.Context(), time.Minute)
			w.Cleanup(cancel)
			return ctx
		}
		for _, client := range []bool{false, true} {
			c := w.client(asynclock.WithReentry(client))
			for _, outer := range []bool{false, true} {
				l := lock(w, c, "key", asynclock.WithReentry(outer))
				wantError(w, errOf(c.Lock(under(l), "key", asynclock.WithReentry(false))), asynclock.ErrReentry)
				joined, err := c.Lock(under(l), "key", asynclock.WithReentry(true))
				if err != nil {
					w.Fatal(err)
				}
				wantError(w, errOf(c.Lock(under(joined), "key", asynclock.WithReentry(false))), asynclock.ErrReentry)
				unlock(w, joined)
				unlock(w, l)
			}
		}
	})
}

// Under a lease that has ended, a call without re-entry waits, although others share the holding still.
func TestUnderAnEndedLeaseThatOthersShareACallWaits(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		outer := lock(w, c, "key")
		under := context.WithoutCancel(outer.Context())
		joined := w.join(under, c, outer)
		unlock(w, outer)
		p := w.ask(under, c, "key")
		p.waits()
		unlock(w, joined)
		unlock(w, p.has())
	})
}

// Goroutines under one lease are not inside together, unless they say so.
func TestAFanOutUnderALease(t *testing.T) {
	for _, reentry := range []bool{false, true} {
		scene(t, map[bool]string{false: "is refused", true: "is inside together with re-entry"}[reentry], func(w *world) {
			c := w.client(asynclock.WithReentry(reentry))
			var inside, refused atomic.Int32
			err := c.WithLock(w.Context(), "key", func(ctx context.Context, _ *asynclock.Lease) error {
				for range 8 {
					go func() {
						err := c.WithLock(ctx, "key", func(context.Context, *asynclock.Lease) error {
							inside.Add(1)
							time.Sleep(time.Second)
							return nil
						})
						if errors.Is(err, asynclock.ErrReentry) {
							refused.Add(1)
						}
					}()
				}
				w.wait()
				w.pass(2 * time.Second)
				return nil
			})
			want := map[bool][2]int32{false: {0, 8}, true: {8, 0}}[reentry]
			if got := [2]int32{inside.Load(), refused.Load()}; err != nil || got != want {
				w.Errorf("got %v inside and refused, error %v; want %v", got, err, want)
			}
		})
	}
}

// Work that goes on after the lease waits for the key if its context comes from outside.
func TestDetachedWorkWaitsWithTheContextFromOutside(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		var later *pending
		err := c.WithLock(w.Context(), "key", func(context.Context, *asynclock.Lease) error {
			later = w.ask(w.Context(), c, "key")
			later.waits()
			return nil
		})
		wantError(w, err, nil)
		unlock(w, later.has())
	})
}

// A program may have two clients, for example of two stores, and take one name in both.
func TestKeysOfTwoClientsHaveNothingInCommon(t *testing.T) {
	bothWays(t, func(w *world, reentry asynclock.LockOption) {
		ours, theirs := w.client(reentry), w.clientOf(memstore.New(), reentry)
		err := ours.WithLock(w.Context(), "key", func(ctx context.Context, outer *asynclock.Lease) error {
			return theirs.WithLock(ctx, "key", func(ctx context.Context, inner *asynclock.Lease) error {
				for c, want := range map[*asynclock.Client]*asynclock.Lease{ours: outer, theirs: inner} {
					if l, ok := c.LeaseFrom(ctx, "key"); !ok || l != want {
						w.Errorf("LeaseFrom of a client: got %v, %v; want its own lease", l, ok)
					}
				}
				if l, ok := asynclock.LeaseFrom(ctx, "key"); ok || l != nil {
					w.Errorf("LeaseFrom: got one of the two leases, want neither")
				}
				wantError(w, errOf(ours.TryLock(ctx, "key", asynclock.WithReentry(false))), asynclock.ErrReentry)
				return nil
			})
		})
		if err != nil {
			w.Error(err)
		}
		if _, ok := ours.LeaseFrom(w.Context(), "key"); ok {
			w.Error("LeaseFrom: got a lease from a context without one")
		}
		if _, ok := ours.LeaseFrom(nil, "key"); ok { //nolint:staticcheck // what is tested
			w.Error("LeaseFrom: got a lease from no context")
		}
	})
}
