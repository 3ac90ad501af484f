// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

// roundTrip is a round roundTrip to the store of the stories in this file.
const roundTrip = 6 * time.Millisecond

// distant makes each request take a roundTrip.
func (w *world) distant() {
	w.store.Every(asynclocktest.Any, asynclocktest.Slow(roundTrip/2, roundTrip/2))
}

// semaphore returns that of the key.
func (w *world) semaphore(c *asynclock.Client, key string, permits int) *asynclock.Semaphore {
	s, err := c.Semaphore(key, permits)
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// permit returns the call that takes one of so many permits.
func (w *world) permit(c *asynclock.Client, permits int, try bool) acquire {
	return func(ctx context.Context, key string, options ...asynclock.LockOption) (*asynclock.Lease, error) {
		s := w.semaphore(c, key, permits)
		if try {
			return s.TryAcquire(ctx, 1, options...)
		}
		return s.Acquire(ctx, 1, options...)
	}
}

// with returns the call with options.
func (call acquire) with(options ...asynclock.LockOption) acquire {
	return func(ctx context.Context, key string, more ...asynclock.LockOption) (*asynclock.Lease, error) {
		return call(ctx, key, append(options, more...)...)
	}
}

// neighbours are what others of the same client do, again and again, beside one who tries.
func neighbours(w *world, c *asynclock.Client) map[string]func(ctx context.Context) {
	const hold = time.Millisecond
	taking := func(call acquire) func(ctx context.Context) {
		return func(ctx context.Context) {
			l, err := call(ctx, "key")
			time.Sleep(hold)
			if err == nil {
				_ = l.Unlock(context.Background()) // may be lost by its maximum hold
			}
		}
	}
	lock, rlock, acquire := acquire(c.Lock), acquire(c.RLock), w.permit(c, 100_000, false)
	return map[string]func(ctx context.Context){
		"Lock":                           taking(lock),
		"Lock with a minimum hold":       taking(lock.with(asynclock.WithMinHold(2 * hold))),
		"Lock with a maximum hold":       taking(lock.with(asynclock.WithMaxHold(time.Second))),
		"Lock without renewal":           taking(lock.with(asynclock.WithRenewal(false))),
		"a retained key":                 taking(lock.with(asynclock.WithRetention(time.Minute))),
		"RLock":                          taking(rlock),
		"RLock with a maximum hold":      taking(rlock.with(asynclock.WithMaxHold(time.Second))),
		"RLock that is retained":         taking(rlock.with(asynclock.WithRetention(time.Minute))),
		"Acquire":                        taking(acquire),
		"Acquire with a minimum hold":    taking(acquire.with(asynclock.WithMinHold(2 * hold))),
		"Acquire with a maximum hold":    taking(acquire.with(asynclock.WithMaxHold(time.Second))),
		"Acquire without renewal":        taking(acquire.with(asynclock.WithRenewal(false))),
		"TryLock":                        taking(c.TryLock),
		"TryRLock":                       taking(c.TryRLock),
		"TryAcquire with a minimum hold": taking(w.permit(c, 100_000, true).with(asynclock.WithMinHold(2 * hold))),
		"a lease under a lease": func(ctx context.Context) {
			_ = c.WithLock(ctx, "key", func(ctx context.Context, _ *asynclock.Lease) error {
				return c.WithLock(ctx, "key", func(context.Context, *asynclock.Lease) error {
					time.Sleep(hold)
					return nil
				}, asynclock.WithReentry(true))
			})
		},
		"LockAll": func(ctx context.Context) {
			if m, err := c.LockAll(ctx, []string{"another", "key"}); err == nil {
				time.Sleep(hold)
				_ = m.Unlock(context.Background())
			}
		},
		"a future that is received": func(ctx context.Context) {
			select {
			case r := <-c.LockChan(ctx, "key"):
				if l, err := r.Lease(); err == nil {
					time.Sleep(hold)
					_ = l.Unlock(context.Background())
				}
			case <-ctx.Done():
			}
		},
		"futures that are left":           func(ctx context.Context) { c.LockChan(ctx, "key"); time.Sleep(hold) },
		"futures of readers":              func(ctx context.Context) { c.RLockChan(ctx, "key"); time.Sleep(hold) },
		"futures of permits":              func(ctx context.Context) { w.semaphore(c, "key", 100_000).AcquireChan(ctx, 1); time.Sleep(hold) },
		"requests that end by their wait": taking(lock.with(asynclock.WithWait(roundTrip / 2))),
	}
}

// tripsBeside is how many round trips a try takes at most. Those who are ahead of it may give up
// meanwhile, or have what another of their client gives back.
func tripsBeside(other string) time.Duration {
	switch other {
	case "requests that end by their wait", "futures of permits", "Acquire":
		return 6
	}
	return 2
}

// A try waits for the answer to a request that is under way, and for the one to its own. It does so whatever others
// of its client do, and it never waits for their unlock.
func TestTryBesideOthersIsDecidedByTwoAnswers(t *testing.T) {
	tries := map[string]func(w *world, c *asynclock.Client) acquire{
		"TryLock":  func(_ *world, c *asynclock.Client) acquire { return c.TryLock },
		"TryRLock": func(_ *world, c *asynclock.Client) acquire { return c.TryRLock },
		"TryRLock with a maximum hold": func(_ *world, c *asynclock.Client) acquire {
			return acquire(c.TryRLock).with(asynclock.WithMaxHold(time.Second))
		},
		"TryAcquire": func(w *world, c *asynclock.Client) acquire { return w.permit(c, 100_000, true) },
		"TryAcquire with a maximum hold": func(w *world, c *asynclock.Client) acquire {
			return w.permit(c, 100_000, true).with(asynclock.WithMaxHold(time.Second))
		},
		"WithWait(0)": func(_ *world, c *asynclock.Client) acquire { return acquire(c.Lock).with(asynclock.WithWait(0)) },
		"LockChan that never waits": func(_ *world, c *asynclock.Client) acquire {
			return func(ctx context.Context, key string, _ ...asynclock.LockOption) (*asynclock.Lease, error) {
				return (<-c.LockChan(ctx, key, asynclock.WithWait(0))).Lease()
			}
		},
		"TryLockAll": func(_ *world, c *asynclock.Client) acquire {
			return func(ctx context.Context, key string, _ ...asynclock.LockOption) (*asynclock.Lease, error) {
				m, err := c.TryLockAll(ctx, []string{key})
				if err == nil {
					go func() { _ = m.Unlock(context.Background()) }() // ends with the store's answer
				}
				return nil, err
			}
		},
	}
	const others = 16
	for try, call := range tries {
		for other := range neighbours(nil, nil) {
			scene(t, try+" beside "+other, func(w *world) {
				c := w.client()
				w.distant()
				ctx, cancel := context.WithCancel(w.Context())
				var all sync.WaitGroup
				act := neighbours(w, c)[other]
				for range others {
					all.Go(func() {
						for ctx.Err() == nil {
							act(ctx)
						}
					})
				}
				var longest time.Duration
				for i := range 40 {
					time.Sleep(time.Duration(i%7) * 900 * time.Microsecond)
					bounded, done := context.WithTimeout(w.Context(), 3*time.Second)
					begun := time.Now()
					l, err := call(w, c)(bounded, "key")
					done()
					longest = max(longest, time.Since(begun))
					if err != nil && !errors.Is(err, asynclock.ErrHeld) {
						w.Errorf("got error %v, want a lease or ErrHeld", err)
						break
					}
					if l != nil {
						_ = l.Unlock(context.Background())
					}
				}
				cancel()
				all.Wait()
				if most := tripsBeside(other) * roundTrip; longest > most {
					w.Errorf("waited for %v, want at most %v", longest, most)
				}
			})
		}
	}
}

// Tries that come together are decided together.
func TestManyTriesAtOnceAreDecidedTogether(t *testing.T) {
	const many = 1000
	for name, c := range map[string]struct {
		call func(w *world, c *asynclock.Client) acquire
		get  int
	}{
		"TryLock":                {func(_ *world, c *asynclock.Client) acquire { return c.TryLock }, 1},
		"TryRLock":               {func(_ *world, c *asynclock.Client) acquire { return c.TryRLock }, many},
		"TryAcquire":             {func(w *world, c *asynclock.Client) acquire { return w.permit(c, many, true) }, many},
		"TryAcquire of too many": {func(w *world, c *asynclock.Client) acquire { return w.permit(c, many/2, true) }, many / 2},
	} {
		scene(t, name, func(w *world) {
			client := w.client()
			w.distant()
			call, begun := c.call(w, client), time.Now()
			var got atomic.Int32
			var all sync.WaitGroup
			for range many {
				all.Go(func() {
					switch _, err := call(w.Context(), "key"); {
					case err == nil:
						got.Add(1)
					case !errors.Is(err, asynclock.ErrHeld):
						w.Errorf("got error %v, want ErrHeld", err)
					}
				})
			}
			all.Wait()
			if took := time.Since(begun); took > 2*roundTrip || int(got.Load()) != c.get {
				w.Errorf("%d got it, and all were answered after %v; want %d, and %v", got.Load(), took, c.get, 2*roundTrip)
			}
		})
	}
}

// A caller that has given up may still get the key. The client gives it back, and a try that comes meanwhile is not refused
// because of that.
func TestTryAfterOneThatHasGivenUp(t *testing.T) {
	for name, first := range map[string]func(c *asynclock.Client) acquire{
		"TryLock":             func(c *asynclock.Client) acquire { return c.TryLock },
		"Lock":                func(c *asynclock.Client) acquire { return c.Lock },
		"Lock on other terms": func(c *asynclock.Client) acquire { return acquire(c.Lock).with(asynclock.WithMinHold(time.Second)) },
	} {
		for _, after := range []time.Duration{0, time.Millisecond, roundTrip / 2, roundTrip} {
			scene(t, fmt.Sprint(name, " and ", after), func(w *world) {
				c := w.client()
				w.distant()
				ctx, cancel := context.WithTimeout(w.Context(), time.Millisecond)
				defer cancel()
				_, err := first(c)(ctx, "key")
				wantError(w, err, context.DeadlineExceeded)
				time.Sleep(after)
				begun := time.Now()
				l, err := c.TryLock(w.Context(), "key")
				if err != nil {
					w.Fatalf("got error %v, want the key, which nobody has", err)
				}
				if took := time.Since(begun); took > 2*roundTrip {
					w.Errorf("took %v, want at most %v", took, 2*roundTrip)
				}
				unlock(w, l)
				w.wantUnused()
			})
		}
	}
}

// A try for less may be served where another of its client was refused.
func TestTryForLessIsDecidedByItself(t *testing.T) {
	story(t, func(w *world) {
		theirs, ours := w.semaphore(w.client(), "key", 3), w.semaphore(w.client(), "key", 3)
		_, err := theirs.Acquire(w.Context(), 1)
		wantError(w, err)
		w.distant()
		all := w.askBy(w.Context(), func(ctx context.Context, _ string, _ ...asynclock.LockOption) (*asynclock.Lease, error) {
			return ours.TryAcquire(ctx, 3)
		}, "key")
		l, err := ours.TryAcquire(w.Context(), 1)
		wantError(w, all.ended(), asynclock.ErrHeld)
		if err != nil {
			w.Fatalf("got error %v, want a permit, of which two are free", err)
		}
		unlock(w, l)
	})
}

// Leases with a minimum or maximum hold that begin together are granted together.
func TestManyWithBoundsAreGrantedTogether(t *testing.T) {
	const many = 1000
	permit := func(w *world, c *asynclock.Client) acquire { return w.permit(c, many, false) }
	for name, c := range map[string]struct {
		call   func(w *world, c *asynclock.Client) acquire
		option asynclock.LockOption
	}{
		"permits with a maximum hold": {permit, asynclock.WithMaxHold(time.Minute)},
		"permits with a minimum hold": {permit, asynclock.WithMinHold(time.Second)},
		"readers with a maximum hold": {func(_ *world, c *asynclock.Client) acquire { return c.RLock }, asynclock.WithMaxHold(time.Minute)},
	} {
		scene(t, name, func(w *world) {
			w.distant()
			call, begun := c.call(w, w.client()).with(c.option), time.Now()
			var all sync.WaitGroup
			for range many {
				all.Go(func() {
					if _, err := call(w.Context(), "key"); err != nil {
						w.Errorf("got error %v, want a lease", err)
					}
				})
			}
			all.Wait()
			if took := time.Since(begun); took > 2*roundTrip {
				w.Errorf("all have it after %v, want %v", took, 2*roundTrip)
			}
		})
	}
}

// A minimum hold is a rate limit: it counts for each permit, whoever had it and whenever it was unlocked.
func TestMinimumHoldOfPermitsIsARate(t *testing.T) {
	const permits, hold, callers = 50, time.Second, 16
	story(t, func(w *world) {
		w.distant()
		var mu sync.Mutex
		var starts []time.Time
		var all sync.WaitGroup
		begun := time.Now()
		clients := []*asynclock.Client{w.client(), w.client(), w.client()}
		for i := range len(clients) * callers {
			call := w.permit(clients[i%len(clients)], permits, false).with(asynclock.WithMinHold(hold))
			all.Go(func() {
				for time.Since(begun) < 20*time.Second {
					l, err := call(w.Context(), "key")
					if err != nil {
						w.Errorf("got error %v, want a lease", err)
						return
					}
					mu.Lock()
					starts = append(starts, time.Now())
					mu.Unlock()
					if i%7 == 0 {
						time.Sleep(hold * 3 / 2)
					}
					unlock(w, l)
				}
			})
		}
		all.Wait()
		for i := range starts[permits:] {
			if d := starts[i+permits].Sub(starts[i]); d < hold {
				w.Fatalf("%d permits were taken within %v, want %d at most", permits+1, d, permits)
			}
		}
		if got, want := len(starts), permits*20*3/4; got < want {
			w.Errorf("%d uses in 20 s, want about %d", got, want)
		}
	})
}
