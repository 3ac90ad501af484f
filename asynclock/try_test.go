// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
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

// roundTrip is how long the store takes to answer in the stories that follow.
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
	const others = 8
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
