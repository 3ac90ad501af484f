// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A result may be received as soon as it is sent, before the request has returned.
func TestAResultIsWholeWhenItIsReceived(t *testing.T) {
	c, err := asynclock.New(memstore.New(), asynclock.WithoutLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer abandon(c)
	retain := asynclock.WithRetention(time.Minute)
	keys := make([]string, 3000)
	for i := range keys {
		keys[i] = fmt.Sprint("k", i)
		l, err := c.Lock(t.Context(), keys[i], retain)
		if err != nil {
			t.Fatal(err)
		}
		unlock(t, l)
	}
	results := c.LockEach(t.Context(), slices.Values(keys), retain)
	var bad atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for got := range results {
				l, err := got.Lease()
				if l == nil && err == nil {
					bad.Add(1)
					continue
				}
				if err != nil {
					t.Error(err)
					continue
				}
				l.UnlockChan(context.Background())
			}
		})
	}
	wg.Wait()
	if bad.Load() > 0 {
		t.Errorf("%d results with neither lease nor error", bad.Load())
	}
}

// Permits that can't be shared lie with one future, and the store is not asked again and again.
func TestPermitsWithABoundLieInPeace(t *testing.T) {
	st := asynclocktest.Wrap(memstore.New())
	c, err := asynclock.New(st, asynclock.WithoutLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer abandon(c)
	s := semaphore(t, c, 2, asynclock.WithMaxHold(time.Minute))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a, b := s.AcquireChan(ctx, 1), s.AcquireChan(ctx, 1)
	time.Sleep(300 * time.Millisecond)
	if n := len(st.Calls(asynclocktest.Any)); n > 10 {
		t.Errorf("%d requests in 300 ms for two futures that nobody receives from", n)
	}
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
}

// A permit that is one too many goes to no future.
func TestFewerPermitsPassToNoIdleFuture(t *testing.T) {
	story(t, func(w *world) {
		ours := w.client()
		s := semaphore(w, ours, 2)
		a := takePermits(w, s, 1)
		f := s.AcquireChan(w.Context(), 1)
		w.wait()
		b := takePermits(w, s, 1) // takes what lies
		if err := s.SetPermits(w.Context(), 1); err != nil {
			w.Fatal(err)
		}
		w.pass(time.Second)
		go func() { <-f }()
		w.wait()
		unlock(w, a)
		w.wait()
		if info := w.inspect("key"); info.Used > 1 {
			w.Errorf("the limit is 1 and one was given back, but %d are used", info.Used)
		}
		unlock(w, b)
	})
}

// A future that joins a lease while Close ends it has an answer.
func TestAFutureThatJoinsDuringClose(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		l := lock(w, c, "key")
		closing, giveUp := context.WithCancel(w.Context())
		slow := &slowCtx{Context: l.Context(), at: 1, block: func() {
			go c.Close(closing)
			w.wait()
		}}
		future := c.LockChan(slow, "key", asynclock.WithReentry(true))
		giveUp()
		w.pass(2 * time.Second)
		wantError(w, errOf((<-future).Lease()), asynclock.ErrClosed)
	})
}

// Loops with a default find the key, also with options under which nothing is shared.
func TestLoopsWithOptions(t *testing.T) {
	for name, o := range map[string]asynclock.LockOption{
		"no renewal": asynclock.WithRenewal(false), "max hold": asynclock.WithMaxHold(500 * time.Millisecond),
		"long max hold": asynclock.WithMaxHold(time.Hour),
	} {
		for _, kind := range []string{"lock", "reader", "permit"} {
			scene(t, name+kind, func(w *world) {
				w.store.Every(asynclocktest.Any, asynclocktest.Slow(time.Millisecond, time.Millisecond))
				ours := w.client()
				ctx, cancel := context.WithCancel(w.Context())
				defer cancel()
				start := time.Now()
				for range 1200 {
					var ch <-chan asynclock.Result
					switch kind {
					case "lock":
						ch = ours.LockChan(ctx, "key", o)
					case "reader":
						ch = ours.RLockChan(ctx, "key", o)
					default:
						ch = semaphore(w, ours, 2).AcquireChan(ctx, 1, o)
					}
					select {
					case r := <-ch:
						unlock(w, claim(w, of(r)))
						if took := time.Since(start); took > 200*time.Millisecond {
							w.Errorf("had it after %v", took)
						}
						return
					default:
						time.Sleep(50 * time.Millisecond)
					}
				}
				w.Errorf("not had after %v and %d calls: %+v", time.Since(start), w.calls(asynclocktest.Any), w.inspect("key"))
			})
		}
	}
}

// Of two futures the one that is looked at has the key.
func TestAPolledFutureWithOptions(t *testing.T) {
	for name, o := range map[string]asynclock.LockOption{
		"no renewal": asynclock.WithRenewal(false), "max hold": asynclock.WithMaxHold(500 * time.Millisecond),
	} {
		scene(t, name, func(w *world) {
			ours := w.client()
			polled := ours.LockChan(w.Context(), "key", o)
			other := ours.LockChan(w.Context(), "key", o)
			start := time.Now()
			for len(polled) == 0 && time.Since(start) < time.Minute {
				time.Sleep(7 * time.Millisecond)
			}
			if took := time.Since(start); took > time.Second {
				w.Errorf("had after %v", took)
			}
			runtime.KeepAlive(other)
		})
	}
}

// A lease under which futures lie can be downgraded.
func TestDowngradeTakesBackWhatLies(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		l := lock(w, ours, "key")
		in, cancel := context.WithCancel(l.Context())
		defer cancel()
		ch := ours.LockChan(in, "key", asynclock.WithReentry(true))
		chR := ours.RLockChan(in, "key", asynclock.WithReentry(true))
		w.wait()
		r := downgrade(w, l)
		w.pass(time.Second)
		for _, c := range []<-chan asynclock.Result{ch, chR} {
			if len(c) > 0 {
				_, _ = (<-c).Lease()
			}
		}
		p := w.ask(w.Context(), theirs, "key")
		unlock(w, r)
		w.pass(time.Second)
		if _, ok := p.hasNow(); !ok {
			w.Errorf("theirs has nothing: %+v", w.inspect("key"))
		}
		unlock(w, p.get())
	})
}

// A slowCtx calls block when Err is called for the at-th time.
type slowCtx struct {
	context.Context
	calls atomic.Int32
	at    int32
	block func()
}

func (c *slowCtx) Err() error {
	if c.calls.Add(1) == c.at {
		c.block()
	}
	return c.Context.Err()
}
