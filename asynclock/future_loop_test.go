// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// The loops that programs write around a select, each with a new future in each turn. Whether the key is free or
// not: the loop has it within a turn of its release, and leaves it to others at once.
func TestLoopsAroundASelect(t *testing.T) {
	percent := debug.SetGCPercent(-1) // a future that is collected in the turn it came in costs a turn
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	for kind, next := range loops {
		for _, tick := range []time.Duration{time.Millisecond, 50 * time.Millisecond, time.Second} {
			for _, parks := range []bool{true, false} {
				scene(t, fmt.Sprint(kind, ", ", tick, ", parks: ", parks), func(w *world) {
					ours, theirs := w.client(), w.client()
					ctx, cancel := context.WithCancel(w.Context())
					defer cancel()
					held := lock(w, theirs, "key")
					var freed time.Time
					time.AfterFunc(time.Second+time.Millisecond/3, func() {
						freed = time.Now()
						held.UnlockChan(w.Context())
					})
					l := next(ctx, w, ours, tick, parks)
					if late := time.Since(freed); late > tick {
						w.Errorf("the loop has the key %v after its release, want a turn at most", late)
					}
					wantError(w, l.Unlock(w.Context()), nil)
					start := time.Now()
					unlock(w, lock(w, theirs, "key"))
					if waited := time.Since(start); waited > 100*time.Millisecond {
						w.Errorf("the other client waited for %v", waited)
					}
				})
			}
		}
	}
}

// A loop counts once against the limit of the queue, however many futures it has left behind.
func TestALoopDoesNotFillTheQueue(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(asynclock.WithQueueLimit(3)), w.client()
		held := lock(w, theirs, "key")
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		var kept []<-chan asynclock.Result
		for i := range 1000 {
			of := []context.Context{ctx, context.Background()}[i%2]
			kept = append(kept, ours.LockChan(of, "key", asynclock.WithWait(time.Duration(i+1)*time.Hour)))
			kept = append(kept, ours.LockChan(of, "key"))
		}
		third := w.ask(w.Context(), ours, "key")
		w.wait()
		if _, err := ours.Lock(w.Context(), "key"); !errors.Is(err, asynclock.ErrQueueFull) {
			w.Errorf("the fourth caller: got error %v, want ErrQueueFull", err)
		}
		cancel()
		w.wait()
		fourth := w.ask(w.Context(), ours, "key")
		w.wait()
		unlock(w, held)
		unlock(w, third.get())
		unlock(w, fourth.get())
		runtime.KeepAlive(kept)
	})
}

// loops are loops around a select, by what their futures are of.
var loops = map[string]func(ctx context.Context, w *world, c *asynclock.Client, tick time.Duration, parks bool) unlocker{
	"lock": looping(func(ctx context.Context, w *world, c *asynclock.Client) <-chan asynclock.Result {
		return c.LockChan(ctx, "key")
	}),
	"reader": looping(func(ctx context.Context, w *world, c *asynclock.Client) <-chan asynclock.Result {
		return c.RLockChan(ctx, "key")
	}),
	"permit": looping(func(ctx context.Context, w *world, c *asynclock.Client) <-chan asynclock.Result {
		return semaphore(w, c, 3).AcquireChan(ctx, 2)
	}),
	"several": looping(func(ctx context.Context, w *world, c *asynclock.Client) <-chan asynclock.MultiResult {
		return c.LockAllChan(ctx, []string{"key", "other"})
	}),
	"several, one key": looping(func(ctx context.Context, w *world, c *asynclock.Client) <-chan asynclock.MultiResult {
		return c.LockAllChan(ctx, []string{"key"})
	}),
}

// An unlocker is a lease of one key, or of several.
type unlocker interface {
	Unlock(ctx context.Context) error
}

// looping selects on a new future in each turn, with a tick or a default.
func looping[L unlocker, R interface{ Lease() (L, error) }](
	next func(ctx context.Context, w *world, c *asynclock.Client) <-chan R,
) func(ctx context.Context, w *world, c *asynclock.Client, tick time.Duration, parks bool) unlocker {
	turn := func(ctx context.Context, w *world, c *asynclock.Client, tick <-chan time.Time) (got R, ok bool) {
		if tick == nil {
			select {
			case got = <-next(ctx, w, c):
				return got, true
			default:
				return got, false
			}
		}
		select {
		case got = <-next(ctx, w, c):
			return got, true
		case <-tick:
			return got, false
		}
	}
	return func(ctx context.Context, w *world, c *asynclock.Client, tick time.Duration, parks bool) unlocker {
		w.Helper()
		ticks := time.NewTicker(tick)
		defer ticks.Stop()
		parked := map[bool]<-chan time.Time{true: ticks.C}[parks]
		for range 10_000 {
			if got, ok := turn(ctx, w, c, parked); ok {
				l, err := got.Lease()
				return claimed(w, l, err)
			}
			if !parks {
				time.Sleep(tick)
			}
		}
		w.Fatal("the loop never has the key")
		return nil
	}
}

func claimed(tb testing.TB, l unlocker, err error) unlocker {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// of returns a channel that has the result.
func of(r asynclock.Result) <-chan asynclock.Result {
	c := make(chan asynclock.Result, 1)
	c <- r
	return c
}

// One future is looked at from time to time, and another one never. A client that wants the key waits for both.
func TestAFutureThatIsLookedAtFromTimeToTime(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		held := lock(w, theirs, "key")
		polled := ours.LockChan(w.Context(), "key")
		ours.LockChan(w.Context(), "key")
		w.wait()
		other := w.ask(w.Context(), w.client(), "key")
		unlock(w, held)
		start := time.Now()
		for len(polled) == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		l := claim(w, polled)
		if late := time.Since(start); late > time.Second {
			w.Errorf("had the key after %v", late)
		}
		unlock(w, l)
		unlock(w, other.get())
	})
}

// Of two keys that are selected on, the loser's is left to others.
func TestTheLoserOfASelectLeavesItsKey(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		one, other := ours.LockChan(w.Context(), "one"), ours.LockChan(w.Context(), "other")
		w.pass(time.Minute)
		var won *asynclock.Lease
		select {
		case got := <-one:
			won = claim(w, of(got))
		case got := <-other:
			won = claim(w, of(got))
		}
		loser := map[string]string{"one": "other", "other": "one"}[won.Key()]
		start := time.Now()
		unlock(w, lock(w, theirs, loser))
		if waited := time.Since(start); waited > 0 {
			w.Errorf("the loser's key: another client waited for %v", waited)
		}
		unlock(w, won)
	})
}

// A loop has a permit that lies with one of the many futures that it has left behind, although another client waits.
// These are no handoffs, whose number is bounded then.
func TestALoopHasThePermitOfItsFormerTurns(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := semaphore(w, w.client(), 1), semaphore(w, w.client(), 1)
		held, err := semaphore(w, w.client(), 1).Acquire(w.Context(), 1)
		if err != nil {
			w.Fatal(err)
		}
		var former []<-chan asynclock.Result
		for range 1500 {
			former = append(former, ours.AcquireChan(w.Context(), 1))
		}
		w.wait()
		other := theirs.AcquireChan(w.Context(), 1)
		w.wait()
		unlock(w, held)
		w.pass(2 * time.Millisecond)
		select {
		case got := <-ours.AcquireChan(w.Context(), 1):
			unlock(w, claim(w, of(got)))
		default:
			w.Error("the loop has nothing")
		}
		unlock(w, claim(w, other))
		runtime.KeepAlive(former)
	})
}

// Forgotten futures take next to nothing from others.
func TestForgottenFuturesTakeLittle(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		for range 600 {
			ours.LockChan(w.Context(), "key")
		}
		var longest, waited time.Duration
		start := time.Now()
		for time.Since(start) < time.Minute {
			before := time.Now()
			l := lock(w, theirs, "key")
			longest, waited = max(longest, time.Since(before)), waited+time.Since(before)
			time.Sleep(10 * time.Millisecond)
			unlock(w, l)
		}
		if longest > 101*time.Millisecond || waited > time.Second {
			w.Errorf("the other client waited for %v of a minute, %v at once", waited, longest)
		}
	})
}

// A worker pool takes its keys at its own pace, however long a job takes.
func TestLockEachGoesAtThePaceOfItsWorkers(t *testing.T) {
	for _, job := range []time.Duration{time.Millisecond, time.Second, 10 * time.Second} {
		scene(t, job.String(), func(w *world) {
			const jobs, workers = 400, 8
			keys := make([]string, jobs)
			for i := range keys {
				keys[i] = strconv.Itoa(i)
			}
			ours, theirs := w.client(), w.client()
			results := ours.LockEach(w.Context(), slices.Values(keys))
			var ran atomic.Int32
			var pool sync.WaitGroup
			for range workers {
				pool.Go(func() {
					for got := range results {
						l, err := got.Lease()
						if err != nil {
							w.Error(err)
							continue
						}
						time.Sleep(job)
						wantError(w, l.Unlock(w.Context()), nil)
						ran.Add(1)
					}
				})
			}
			start := time.Now()
			w.pass(job / 2)
			if got := w.calls(asynclocktest.Acquire.From(0)); got > workers+32 {
				w.Errorf("%d keys were requested before a job is done, want 32 in advance", got)
			}
			lease, err := theirs.Lock(w.Context(), keys[workers]) // which lies in the channel
			if err != nil {
				w.Fatal(err)
			}
			unlock(w, lease)
			pool.Wait()
			if took := time.Since(start); ran.Load() != jobs || took > (jobs/workers+1)*job+time.Second {
				w.Errorf("%d jobs ran in %v, want %d in %v", ran.Load(), took, jobs, jobs/workers*job)
			}
			w.wantUnused()
		})
	}
}

// A loop that leaves a future behind in each turn costs no more memory after many turns, and no turn is refused.
// Real time and a real collector.
func TestFuturesThatNobodyRefersToDoNotAddUp(t *testing.T) {
	shared := memstore.New()
	ours, err := asynclock.New(shared)
	if err != nil {
		t.Fatal(err)
	}
	defer abandon(ours)
	theirs, err := asynclock.New(shared)
	if err != nil {
		t.Fatal(err)
	}
	defer abandon(theirs)
	one := func(ctx context.Context, key string) unlocker {
		select {
		case got := <-ours.LockChan(ctx, key):
			l, err := got.Lease()
			return claimed(t, l, err)
		default:
			return nil
		}
	}
	several := func(ctx context.Context, key string) unlocker {
		select {
		case got := <-ours.LockAllChan(ctx, []string{key, "other"}):
			l, err := got.Lease()
			return claimed(t, l, err)
		default:
			return nil
		}
	}
	for name, turn := range map[string]func(ctx context.Context, key string) unlocker{
		"held": one, "free": one, "one of several is held": several, "several are free": several,
	} {
		t.Run(name, func(t *testing.T) {
			held := strings.Contains(name, "held")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if held {
				l := lock(t, theirs, name)
				defer unlock(t, l)
			}
			turns := func(n int) {
				for i := range n {
					if l := turn(ctx, name); l != nil {
						wantError(t, l.Unlock(ctx), nil)
					}
					if i%1000 == 0 {
						runtime.GC()
					}
				}
			}
			turns(10_000)
			before := int64(heap())
			turns(50_000)
			start := time.Now()
			for more := int64(heap()) - before; more > 2<<20; more = int64(heap()) - before { // some are being ended
				if time.Since(start) > 10*time.Second {
					t.Fatalf("50,000 turns left %d bytes behind", more)
				}
			}
			for start := time.Now(); !held; {
				if l := turn(ctx, name); l != nil {
					wantError(t, l.Unlock(ctx), nil)
					break
				}
				if time.Since(start) > 10*time.Second {
					t.Fatal("the loop has the key no more")
				}
			}
		})
	}
}

// Many loops poll one key. One after the other has it, and soon: nobody receives in the moment of a release, but the
// next turn of some loop is never far.
func TestManyLoopsPollOneKey(t *testing.T) {
	const number, duration, times = 20, 200 * time.Millisecond, 10
	for _, kinds := range [][2]string{
		{"lock", "lock"}, {"permit", "permit"}, {"reader", "lock"}, {"several", "several"},
	} {
		scene(t, fmt.Sprint(kinds), func(w *world) {
			clients := []*asynclock.Client{w.client(), w.client()}
			start := time.Now()
			var running sync.WaitGroup
			var had [4]atomic.Int32 // by each quarter of the loops: readers and writers, of one client and of the other
			for i := range number {
				running.Go(func() {
					time.Sleep(time.Duration(i) * 50 * time.Microsecond)
					for time.Since(start) < duration {
						l := loops[kinds[i%4/2]](w.Context(), w, clients[i%2], time.Millisecond, false)
						had[i%4].Add(1)
						time.Sleep(100 * time.Microsecond)
						wantError(w, l.Unlock(w.Context()), nil)
					}
				})
			}
			running.Wait()
			for i := range had {
				if n := had[i].Load(); n < times {
					w.Errorf("quarter %d of the loops had the key %d times in %v, want %d at least", i, n, duration, times)
				}
			}
		})
	}
}
