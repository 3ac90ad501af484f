// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

// A receiver has the values of its own context, although another call's request had the keys.
func TestLockAllChanHasTheReceiversValues(t *testing.T) {
	story(t, func(w *world) {
		var log notebook
		type key struct{}
		for _, c := range []*asynclock.Client{w.bounded(), w.detecting(&log)} {
			unreceived := c.LockAllChan(context.WithValue(w.Context(), key{}, "first"), []string{"a", "b"})
			w.wait()
			m, err := (<-c.LockAllChan(context.WithValue(w.Context(), key{}, "second"), []string{"b", "a"})).Lease()
			if err != nil {
				w.Fatal(err)
			}
			part, _ := asynclock.LeaseFrom(m.Context(), "a")
			for _, ctx := range []context.Context{m.Context(), part.Context()} {
				if got := ctx.Value(key{}); got != "second" {
					w.Errorf("got value %v, want that of its own context", got)
				}
			}
			unlockAll(w, m)
			w.wait()
			m, err = (<-unreceived).Lease()
			if err != nil {
				w.Fatal(err)
			}
			if got := m.Context().Value(key{}); got != "first" {
				w.Errorf("got value %v, want that of its own context", got)
			}
			unlockAll(w, m)
		}
		w.wantUnused()
	})
}

// The futures of one context count once against the limit of the queue. Those of others are refused.
func TestLoopsOfSeveralKeysDoNotFillTheQueue(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(asynclock.WithQueueLimit(3)), w.bounded()
		held := lock(w, theirs, "b")
		var kept []<-chan asynclock.MultiResult
		var ends []context.CancelFunc
		for range 3 {
			ctx, cancel := context.WithCancel(w.Context())
			ends = append(ends, cancel)
			for range 100 {
				kept = append(kept, ours.LockAllChan(ctx, []string{"a", "b"}))
				kept = append(kept, ours.LockAllChan(ctx, []string{"a", "b"}, asynclock.WithWait(time.Hour)))
			}
		}
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		wantError(w, errOf((<-ours.LockAllChan(ctx, []string{"a", "b"})).Lease()), asynclock.ErrQueueFull)
		w.wait()
		if n := w.calls(asynclocktest.Acquire.Any); n > 10 {
			w.Errorf("%d requests, want one for each key and few more", n)
		}
		ends[0]()
		w.wait()
		fourth := ours.LockAllChan(ctx, []string{"a", "b"})
		unlock(w, held)
		m, err := (<-fourth).Lease()
		if err != nil {
			w.Fatal(err)
		}
		unlockAll(w, m)
		ends[1]()
		ends[2]()
		w.wait()
		for _, future := range kept {
			wantError(w, errOf((<-future).Lease()), context.Canceled)
		}
		w.wantUnused()
	})
}

// A lease that lies is had by a future that comes, and those that never wait don't wait: neither is limited.
func TestTheQueueLimitOfLockAllChans(t *testing.T) {
	story(t, func(w *world) {
		c := w.bounded(asynclock.WithQueueLimit(1))
		kept, cancel := context.WithCancel(w.Context())
		defer cancel()
		first := c.LockAllChan(kept, []string{"a", "b"})
		w.wait()
		m, err := (<-c.LockAllChan(w.Context(), []string{"a", "b"})).Lease()
		if err != nil {
			w.Fatal(err)
		}
		third, cancelThird := context.WithCancel(w.Context())
		defer cancelThird()
		future := c.LockAllChan(third, []string{"a", "b"}) // nobody waits: the lease was received
		cancel()
		wantError(w, errOf((<-first).Lease()), context.Canceled)
		cancelThird()
		wantError(w, errOf((<-future).Lease()), context.Canceled)
		for range 3 {
			ctx, cancel := context.WithCancel(w.Context())
			defer cancel()
			wantError(w, errOf((<-c.LockAllChan(ctx, []string{"a", "b"}, asynclock.WithWait(0))).Lease()), asynclock.ErrHeld)
		}
		unlockAll(w, m)
	})
}

// A future that comes while a lease lies does not pause with those that it lay with in vain.
func TestALateLockAllChanDoesNotPause(t *testing.T) {
	for _, try := range []bool{false, true} {
		scene(t, fmt.Sprint("never waits: ", try), func(w *world) {
			ours, theirs := w.bounded(), w.bounded()
			var options []asynclock.LockOption
			if try {
				options = append(options, asynclock.WithWait(0))
			}
			kept := ours.LockAllChan(w.Context(), []string{"a", "b"}, options...)
			w.pass(time.Minute + 50*time.Millisecond)
			other := w.ask(w.Context(), theirs, "a")
			w.pass(40 * time.Millisecond)
			late := kept
			if !try {
				late = ours.LockAllChan(w.Context(), []string{"a", "b"})
			}
			unlock(w, other.get())
			start := time.Now()
			m, err := (<-late).Lease()
			if waited := time.Since(start); waited > time.Millisecond || (err != nil) != try {
				w.Errorf("got error %v after %v", err, waited)
			}
			if m != nil {
				unlockAll(w, m)
			}
			runtime.KeepAlive(kept)
		})
	}
}

// A loop with futures that never wait has what one of its former turns was granted. Each turn asks by itself.
func TestALoopOfLockAllChansThatNeverWait(t *testing.T) {
	story(t, func(w *world) {
		w.distant()
		c := w.bounded()
		for start := time.Now(); ; time.Sleep(time.Millisecond) {
			select {
			case got := <-c.LockAllChan(w.Context(), []string{"a", "b"}, asynclock.WithWait(0)):
				m, err := got.Lease()
				if err != nil {
					w.Fatal(err)
				}
				unlockAll(w, m)
				return
			default:
			}
			if time.Since(start) > time.Minute {
				w.Fatal("the loop never has the keys")
			}
		}
	})
}

// A loop under a lease of one of the keys joins that in each turn.
func TestALoopOfLockAllChansUnderALease(t *testing.T) {
	story(t, func(w *world) {
		c := w.bounded(asynclock.WithReentry(true))
		outer, other := lock(w, c, "a"), lock(w, c, "b")
		freed := time.Now().Add(99 * time.Millisecond)
		time.AfterFunc(99*time.Millisecond, func() { other.UnlockChan(context.Background()) })
		for {
			select {
			case got := <-c.LockAllChan(outer.Context(), []string{"a", "b"}):
				m, err := got.Lease()
				if err != nil {
					w.Fatal(err)
				}
				if late := time.Since(freed); late > 10*time.Millisecond {
					w.Errorf("the loop has the keys %v after the release, want a turn at most", late)
				}
				unlockAll(w, m)
				unlock(w, outer)
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
}

// A future whose context ends leaves its lease to the others. The error is that of its own context, and says what
// was in the way.
func TestTheEndOfALockAllChanConcernsNoOther(t *testing.T) {
	why := errors.New("why")
	for _, granted := range []bool{true, false} {
		scene(t, fmt.Sprint("granted: ", granted), func(w *world) {
			ours, theirs := w.bounded(), w.bounded()
			held := lock(w, theirs, "b")
			first := ours.LockAllChan(w.Context(), []string{"a", "b"})
			late, cancel := context.WithTimeoutCause(w.Context(), time.Hour, why)
			defer cancel()
			second := ours.LockAllChan(late, []string{"a", "b"})
			third := ours.LockAllChan(w.Context(), []string{"a", "b"}, asynclock.WithWait(time.Hour))
			key, obstacle := "b", asynclock.ErrHeld
			if granted {
				key, obstacle = "a", context.DeadlineExceeded
				unlock(w, held)
			}
			w.pass(time.Hour)
			for future, want := range map[<-chan asynclock.MultiResult]error{second: why, third: context.DeadlineExceeded} {
				err := errOf((<-future).Lease())
				wantError(w, err, context.DeadlineExceeded, want, obstacle)
				if wantOp(w, err, "lock all", key); errors.Is(err, context.Canceled) {
					w.Errorf("got error %v, which is of another end", err)
				}
			}
			if !granted {
				unlock(w, held)
				w.wait()
			}
			select {
			case got := <-first:
				m, err := got.Lease()
				if err != nil {
					w.Fatal(err)
				}
				unlockAll(w, m)
			default:
				w.Error("nothing is left to the first future")
			}
			w.wantUnused()
		})
	}
}

// The methods of an application's error may use the client.
func TestTheCauseOfALockAllChansEnd(t *testing.T) {
	story(t, func(w *world) {
		c := w.bounded()
		first := c.LockAllChan(w.Context(), []string{"a", "b"})
		ctx, cancel := context.WithCancelCause(w.Context())
		second := c.LockAllChan(ctx, []string{"a", "b"})
		w.wait()
		cancel(curious{c})
		w.wait()
		wantError(w, errOf((<-second).Lease()), context.Canceled)
		m, err := (<-first).Lease()
		if err != nil {
			w.Fatal(err)
		}
		unlockAll(w, m)
	})
}

// A curious error asks for keys when it is compared.
type curious struct{ client *asynclock.Client }

func (curious) Error() string { return "curious" }

func (c curious) Is(error) bool {
	m, err := (<-c.client.LockAllChan(context.Background(), []string{"a", "b"}, asynclock.WithWait(0))).Lease()
	if err == nil {
		m.UnlockChan(context.Background())
	}
	return false
}

// Callers that receive from futures of the same keys have them one after the other, at once.
func TestManyLockAllChansOfTheSameKeys(t *testing.T) {
	for _, early := range []time.Duration{0, 50 * time.Millisecond} {
		scene(t, fmt.Sprint("received after ", early), func(w *world) {
			const callers, work = 50, 10 * time.Millisecond
			c := w.bounded()
			var running sync.WaitGroup
			start := time.Now()
			for range callers {
				running.Go(func() {
					future := c.LockAllChan(w.Context(), []string{"a", "b", "c"})
					time.Sleep(early)
					m, err := (<-future).Lease()
					if err != nil {
						w.Error(err)
						return
					}
					time.Sleep(work)
					unlockAll(w, m)
				})
			}
			running.Wait()
			if took := time.Since(start); took > early+callers*(work+2*time.Millisecond) {
				w.Errorf("took %v, want %v for each caller and little more", took, work)
			}
			w.wantUnused()
		})
	}
}

// One future is looked at from time to time, and others never. A client that wants the keys waits for all of them.
func TestALockAllChanThatIsLookedAtFromTimeToTime(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(), w.bounded()
		held := lock(w, theirs, "a")
		polled := ours.LockAllChan(w.Context(), []string{"a", "b"})
		kept := []<-chan asynclock.MultiResult{
			ours.LockAllChan(w.Context(), []string{"a", "b"}), ours.LockAllChan(w.Context(), []string{"a", "b"}),
		}
		w.wait()
		other := w.ask(w.Context(), theirs, "b")
		unlock(w, other.get())
		unlock(w, held)
		start := time.Now()
		for len(polled) == 0 {
			time.Sleep(time.Millisecond)
		}
		m, err := (<-polled).Lease()
		if err != nil {
			w.Fatal(err)
		}
		if late := time.Since(start); late > 100*time.Millisecond {
			w.Errorf("had the keys after %v", late)
		}
		unlockAll(w, m)
		runtime.KeepAlive(kept)
	})
}

// Futures that a loop has left behind keep the keys from others for a moment each time that the loop has had them.
func TestLockAllChansThatWereLeftBehindTakeLittle(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(), w.bounded()
		var kept []<-chan asynclock.MultiResult
		for range 20 {
			kept = append(kept, ours.LockAllChan(w.Context(), []string{"a", "b"}))
		}
		w.wait()
		for range 10 {
			m, err := (<-ours.LockAllChan(w.Context(), []string{"a", "b"})).Lease()
			if err != nil {
				w.Fatal(err)
			}
			w.pass(time.Millisecond)
			unlockAll(w, m)
			w.wait()
			start := time.Now()
			unlock(w, lock(w, theirs, "b"))
			if waited := time.Since(start); waited > 3*time.Millisecond {
				w.Errorf("another client waited for %v", waited)
			}
		}
		runtime.KeepAlive(kept)
	})
}

// A future that nobody refers to any more keeps no key while it waits for another one, and is counted.
func TestAForgottenLockAllChanEnds(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(), w.bounded()
		held := lock(w, theirs, "b")
		kept := make(chan []<-chan asynclock.MultiResult, 1)
		go func() { // nothing stays on the stack of the story
			keys := []string{"a", "b"}
			kept <- []<-chan asynclock.MultiResult{ours.LockAllChan(w.Context(), keys), ours.LockAllChan(w.Context(), keys)}
		}()
		w.pass(time.Minute)
		w.wantHeld("a", "b")
		<-kept
		collect(w)
		w.wantHeld("b")
		unlock(w, held)
		w.wantUnused()
		if got := ours.Stats().Several.GivenUp.Forgotten; got != 2 {
			w.Errorf("%d futures are counted as forgotten, want 2", got)
		}
	})
}

// The place of a forgotten lease is that of the call that had it.
func TestAForgottenLeaseOfAnotherFuture(t *testing.T) {
	story(t, func(w *world) {
		var log notebook
		c := w.detecting(&log)
		left := make(chan int)
		unreceived := c.LockAllChan(w.Context(), []string{"key", "other"})
		w.wait()
		go func() { left <- receiveAndForget(w, c) }()
		line := <-left
		collect(w)
		log.wantLine(w, "level=WARN", fmt.Sprintf("several_loop_test.go:%d", line), "keys=2")
		if n := strings.Count(log.String(), "forgotten"); n != 1 {
			w.Errorf("told of %d leases, want 1", n)
		}
		runtime.KeepAlive(unreceived)
	})
}

// receiveAndForget returns the line of its call.
func receiveAndForget(w *world, c *asynclock.Client) int {
	_, _, line, _ := runtime.Caller(0)
	_, err := (<-c.LockAllChan(w.Context(), []string{"key", "other"})).Lease()
	if err != nil {
		w.Error(err)
	}
	return line + 1
}
