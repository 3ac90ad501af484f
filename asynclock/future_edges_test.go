// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
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

// A try is not made to wait for the unlock of a future that somebody receives from.
func TestTryLockNeverWaitsForAReceiver(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		f := ours.LockChan(w.Context(), "key")
		w.wait() // it lies
		held := lock(w, theirs, "key")
		unlock(w, held)
		time.Sleep(10 * time.Millisecond) // f is idle
		done := make(chan struct{})
		go func() {
			defer close(done)
			l := claim(w, f)
			time.Sleep(10 * time.Second)
			unlock(w, l)
		}()
		defer func() { <-done }()
		w.wait()
		start := time.Now()
		l, err := ours.TryLock(w.Context(), "key")
		if took := time.Since(start); took > time.Second {
			w.Errorf("TryLock took %v (lease %v, error %v)", took, l, err)
		}
		if err == nil {
			unlock(w, l)
		}
	})
}

// The same for several keys, or LockAll could wait for a key while it holds a larger one.
func TestTryLockAllNeverWaitsForAReceiver(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		f := ours.LockChan(w.Context(), "key")
		w.wait()
		unlock(w, lock(w, theirs, "key"))
		time.Sleep(10 * time.Millisecond)
		done := make(chan struct{})
		go func() {
			defer close(done)
			l := claim(w, f)
			time.Sleep(10 * time.Second)
			unlock(w, l)
		}()
		defer func() { <-done }()
		w.wait()
		start := time.Now()
		l, err := ours.TryLockAll(w.Context(), []string{"a", "key"})
		if took := time.Since(start); took > time.Second {
			w.Errorf("TryLockAll took %v (lease %v, error %v)", took, l, err)
		}
		if err == nil {
			_ = l.Unlock(w.Context())
		}
	})
}

// The same for a future that never waits.
func TestAFutureWithoutAWaitNeverWaitsForAReceiver(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		f := ours.LockChan(w.Context(), "key")
		w.wait()
		unlock(w, lock(w, theirs, "key"))
		time.Sleep(10 * time.Millisecond)
		done := make(chan struct{})
		go func() {
			defer close(done)
			l := claim(w, f)
			time.Sleep(10 * time.Second)
			unlock(w, l)
		}()
		defer func() { <-done }()
		w.wait()
		start := time.Now()
		l, err := (<-ours.LockChan(w.Context(), "key", asynclock.WithWait(0))).Lease()
		if took := time.Since(start); took > time.Second {
			w.Errorf("took %v (lease %v, error %v)", took, l, err)
		}
		if err == nil {
			unlock(w, l)
		}
	})
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

// Permits that a look passes on are not also waited for in the store.
func TestALookLeavesTheContenderItsWaiter(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		s, other := semaphore(w, ours, 2), semaphore(w, theirs, 2)
		held := takePermits(w, other, 1)
		ctx1, cancel1 := context.WithCancel(w.Context())
		s.AcquireChan(ctx1, 1)
		w.wait() // it lies
		second := s.AcquireChan(w.Context(), 1)
		w.pass(2 * time.Millisecond) // the second one has it; its request waits in the store
		l := claim(w, second)
		cancel1()
		w.wait()
		w.pass(10 * time.Second)
		unlock(w, l)
		unlock(w, held)
	})
}

// Futures whose channels are gone leave the queue before somebody is refused.
func TestAQueueOfFuturesThatAreGoneIsNotFull(t *testing.T) {
	shared := memstore.New()
	ours, _ := asynclock.New(shared, asynclock.WithoutLogger())
	defer abandon(ours)
	theirs, _ := asynclock.New(shared, asynclock.WithoutLogger())
	defer abandon(theirs)
	l := lock(t, theirs, "key")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	limit := asynclock.WithQueueLimit(100)
	for range 200 {
		ours.LockChan(ctx, "key", limit)
	}
	for range 5 {
		runtime.GC()
	}
	select {
	case r := <-ours.LockChan(ctx, "key", limit):
		_, err := r.Lease()
		t.Errorf("got error %v, want a place in the queue", err)
	default:
	}
	short, cancel2 := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel2()
	if _, err := ours.Lock(short, "key", limit); errors.Is(err, asynclock.ErrQueueFull) {
		t.Errorf("Lock: %v", err)
	}
	unlock(t, l)
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

// If the notification of a waiter is lost, a renewal finds it soon, however long the TTL is.
func TestALostNotificationAboutWhatLies(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		ch := ours.LockChan(w.Context(), "key", asynclock.WithTTL(time.Hour))
		w.wait()
		w.store.EveryEvent(asynclocktest.EventMatch(asynclocktest.AnyEvent).For(0), asynclocktest.Drop)
		start := time.Now()
		l := lock(w, theirs, "key")
		if waited := time.Since(start); waited > 6*time.Second {
			w.Errorf("waited for %v for a key that nobody has", waited)
		}
		unlock(w, l)
		runtime.KeepAlive(ch)
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

// A try takes what lies here and what is free in the store.
func TestTryAcquireTakesWhatLiesAndWhatIsFree(t *testing.T) {
	story(t, func(w *world) {
		ours := w.client()
		s := semaphore(w, ours, 2)
		a := takePermits(w, s, 1)
		f := s.AcquireChan(w.Context(), 1)
		w.wait()
		start := time.Now()
		_, err := s.TryAcquire(w.Context(), 2)
		if took := time.Since(start); took > 10*time.Millisecond {
			w.Errorf("TryAcquire took %v (%v)", took, err)
		}
		unlock(w, a)
		runtime.KeepAlive(f)
	})
}

// The same for a call that waits.
func TestAcquireTakesWhatLiesAndWhatIsFree(t *testing.T) {
	story(t, func(w *world) {
		ours := w.client()
		s := semaphore(w, ours, 4)
		a := takePermits(w, s, 1)
		f := s.AcquireChan(w.Context(), 1)
		w.wait()
		start := time.Now()
		l := takePermits(w, s, 2)
		if took := time.Since(start); took > 10*time.Millisecond {
			w.Errorf("Acquire(2) took %v, with 2 free", took)
		}
		unlock(w, a)
		unlock(w, l)
		runtime.KeepAlive(f)
	})
}

// A loop that looks rarely finds the key, also where the store does not tell who else wants it.
func TestALoopOnAStoreThatDoesNotTell(t *testing.T) {
	for _, tick := range []time.Duration{50 * time.Millisecond, 200 * time.Millisecond, time.Second} {
		scene(t, tick.String(), func(w *world) {
			for _, kind := range []store.EventKind{store.EventQueued, store.EventRequested} {
				w.store.EveryEvent(asynclocktest.Kind(kind), asynclocktest.Drop)
			}
			quiet := promising(w.store, true, false)
			quiet.acquire = func(context.Context, []store.AcquireRequest) error {
				time.Sleep(time.Millisecond)
				return nil
			}
			c := w.clientOf(quiet)
			ctx, cancel := context.WithCancel(w.Context())
			defer cancel()
			start := time.Now()
			for time.Since(start) < 10*time.Minute {
				select {
				case r := <-c.LockChan(ctx, "key"):
					unlock(w, claim(w, of(r)))
					return
				default:
					time.Sleep(tick)
				}
			}
			w.Errorf("not had after %v", time.Since(start))
		})
	}
}

// A caller on other terms waits a millisecond for a future of its client.
func TestACallerOnOtherTermsGoesFirst(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		held := lock(w, theirs, "key")
		ours.LockChan(w.Context(), "key")
		w.wait()
		p := w.ask(w.Context(), ours, "key", asynclock.WithDescription("other"))
		w.pass(time.Second)
		unlock(w, held)
		start := time.Now()
		l := p.get()
		if took := time.Since(start); took > 10*time.Millisecond {
			w.Errorf("another caller of this client had it after %v", took)
		}
		unlock(w, l)
	})
}

// The same behind many futures, each on terms of its own.
func TestACallerBehindFuturesOnManyTerms(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		held := lock(w, theirs, "key")
		for i := range 20 {
			ours.LockChan(w.Context(), "key", asynclock.WithTTL(ttl+time.Duration(i)*time.Second))
		}
		w.pass(time.Second)
		p := w.ask(w.Context(), ours, "key")
		p2 := w.ask(w.Context(), theirs, "key")
		start := time.Now()
		unlock(w, held)
		l2 := p2.get()
		unlock(w, l2)
		l := p.get()
		if took := time.Since(start); took > 300*time.Millisecond {
			w.Errorf("after %v", took)
		}
		unlock(w, l)
	})
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

// An idle future whose channel is gone ends when it would ask again.
func TestAFutureThatIsGoneAsksNoMore(t *testing.T) {
	shared := memstore.New()
	ours, _ := asynclock.New(shared, asynclock.WithoutLogger())
	defer abandon(ours)
	theirs, _ := asynclock.New(shared, asynclock.WithoutLogger())
	defer abandon(theirs)
	ours.LockChan(t.Context(), "key")
	time.Sleep(20 * time.Millisecond)
	n := 0
	for start := time.Now(); time.Since(start) < 1500*time.Millisecond; {
		before := time.Now()
		l := lock(t, theirs, "key")
		if time.Since(before) > 50*time.Millisecond {
			n++
		}
		time.Sleep(time.Millisecond)
		unlock(t, l)
		runtime.GC()
	}
	if n > 1 {
		t.Errorf("%d times another client waited for the patience, for a future that nobody can receive from", n)
	}
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
