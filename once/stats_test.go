// SPDX-License-Identifier: Apache-2.0

package once_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/once"
)

// A counted client calls Do with one Stats, and counts the calls itself.
type counted struct {
	*world
	*once.Stats

	c     *asynclock.Client
	calls int64
}

// do calls Do on a goroutine of its own, which the job may end.
func (c *counted) do(ctx context.Context, job func(context.Context, once.Run) error, options ...once.Option) {
	c.calls++
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		_, _ = once.Do(ctx, c.c, key, every, job, append(options, once.WithStats(c.Stats))...)
	}()
	<-done
}

// wantCounts checks the counts, and that each call is in one of them.
func (c *counted) wantCounts(want once.Counts) {
	c.Helper()
	got := c.Counts()
	if got != want {
		c.Errorf("counts:\ngot  %+v\nwant %+v", got, want)
	}
	if n := got.Runs + got.Skipped + got.Held + got.Canceled + got.Errors; n != c.calls {
		c.Errorf("calls: got %d in %+v, want %d", n, got, c.calls)
	}
	if n := got.Done + got.Failed + got.Unfinished + got.Running; n != got.Runs {
		c.Errorf("ends of runs and runs now: got %d in %+v, want the runs, %d", n, got, got.Runs)
	}
}

// lasts is how long the jobs of these tests take.
const lasts = 2 * time.Second

// took is what was counted with one run of such a job.
func took(c once.Counts) once.Counts {
	c.Runs, c.LastTook, c.LongestTook, c.Took = 1, lasts, lasts, lasts
	return c
}

// returning is a job that takes its time.
func returning(err error) func(context.Context, once.Run) error {
	return func(context.Context, once.Run) error {
		time.Sleep(lasts)
		return err
	}
}

func TestEachCallCountsForWhatItCameTo(t *testing.T) {
	noPaper := errors.New("no paper")
	for name, tt := range map[string]struct {
		call func(c *counted)
		want once.Counts
	}{
		"a run that ends well":  {func(c *counted) { c.do(c.Context(), returning(nil)) }, took(once.Counts{Done: 1})},
		"a run with an error":   {func(c *counted) { c.do(c.Context(), returning(noPaper)) }, took(once.Counts{Failed: 1})},
		"a run that panics":     {func(c *counted) { c.do(c.Context(), panics) }, took(once.Counts{Failed: 1})},
		"a goroutine that ends": {func(c *counted) { c.do(c.Context(), exits) }, took(once.Counts{Failed: 1})},
		"an error that panics": {
			func(c *counted) { c.do(c.Context(), returning((*badError)(nil))) }, took(once.Counts{Unfinished: 1}),
		},
		"a run that was told to stop": {func(c *counted) {
			ctx, cancel := context.WithTimeout(c.Context(), lasts)
			defer cancel()
			c.do(ctx, untilEnd)
		}, took(once.Counts{Unfinished: 1})},
		"a run that ends well after it was told to stop": {func(c *counted) {
			ctx, cancel := context.WithTimeout(c.Context(), time.Second)
			defer cancel()
			c.do(ctx, returning(nil))
		}, took(once.Counts{Done: 1})},
		"a lease that is lost": {func(c *counted) {
			c.do(c.Context(), untilEnd, once.WithLockOptions(asynclock.WithMaxHold(lasts)))
		}, took(once.Counts{Unfinished: 1})},
		"a lease that is lost in spite of the job": {func(c *counted) {
			c.do(c.Context(), returning(nil), once.WithLockOptions(asynclock.WithMaxHold(time.Second)))
		}, took(once.Counts{Unfinished: 1})},
		"an end that the store refuses": {func(c *counted) {
			c.do(c.Context(), func(ctx context.Context, run once.Run) error {
				c.store.Every(asynclocktest.WriteNote.Any, asynclocktest.Fail(asynclock.ErrDenied))
				return returning(nil)(ctx, run)
			})
		}, took(once.Counts{Unfinished: 1})},
		"a job that is done": {func(c *counted) {
			c.wantRan(c.client())
			c.do(c.Context(), c.never)
		}, once.Counts{Skipped: 1}},
		"a job that another has done meanwhile": {func(c *counted) {
			c.store.Next(asynclocktest.Acquire.From(0), func(_ context.Context, carry func()) error {
				c.wantRan(c.client())
				carry()
				return nil
			})
			c.do(c.Context(), c.never)
		}, once.Counts{Skipped: 1}},
		"attempts that are used up": {func(c *counted) {
			dead := c.begin(c.client(), once.WithAttempts(1))
			c.dies(1)
			c.do(c.Context(), c.never, once.WithAttempts(1))
			dead.ends(nil)
		}, once.Counts{Skipped: 1}},
		"another that runs the job": {func(c *counted) {
			job := c.begin(c.client())
			c.do(c.Context(), c.never)
			job.ends(nil)
		}, once.Counts{Held: 1}},
		"a store that fails": {func(c *counted) {
			c.store.Every(nil, asynclocktest.Refuse)
			c.do(c.Context(), c.never)
		}, once.Counts{Errors: 1}},
		"a run that is not recorded": {func(c *counted) {
			c.store.Every(asynclocktest.WriteNote.Any, asynclocktest.Fail(asynclock.ErrDenied))
			c.do(c.Context(), c.never)
		}, once.Counts{Errors: 1}},
		"a store that grants nothing for a while": {func(c *counted) {
			c.grantsNothingFor(every / 2)
			c.do(c.Context(), returning(nil))
		}, took(once.Counts{Done: 1})},
		"a store that grants nothing for long": {func(c *counted) {
			c.grantsNothingFor(2 * every)
			c.do(c.Context(), c.never)
		}, once.Counts{Errors: 1}},
		"a context that has ended": {func(c *counted) {
			ctx, cancel := context.WithCancel(c.Context())
			cancel()
			c.do(ctx, c.never)
		}, once.Counts{Canceled: 1}},
		"a context that ends before a dead store answers": {func(c *counted) {
			c.store.Every(nil, asynclocktest.Hang)
			ctx, cancel := context.WithTimeout(c.Context(), time.Second)
			defer cancel()
			c.do(ctx, c.never)
		}, once.Counts{Errors: 1}},
		"no context":     {func(c *counted) { c.do(nil, c.never) }, once.Counts{Errors: 1}}, //nolint:staticcheck // that is the point
		"no function":    {func(c *counted) { c.do(c.Context(), nil) }, once.Counts{Errors: 1}},
		"a bad option":   {func(c *counted) { c.do(c.Context(), c.never, once.WithAttempts(0)) }, once.Counts{Errors: 1}},
		"a nil option":   {func(c *counted) { c.do(c.Context(), c.never, nil) }, once.Counts{Errors: 1}},
		"a bad offset":   {func(c *counted) { c.do(c.Context(), c.never, once.WithOffset(-1)) }, once.Counts{Errors: 1}},
		"a bad TTL":      {func(c *counted) { c.do(c.Context(), c.never, once.WithLockOptions(asynclock.WithTTL(0))) }, once.Counts{Errors: 1}},
		"another's note": {func(c *counted) { c.setNote(c.c, "leader"); c.do(c.Context(), c.never) }, once.Counts{Errors: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				c := &counted{world: w, Stats: new(once.Stats), c: w.client()}
				tt.call(c)
				c.wantCounts(tt.want)
			})
		})
	}
}

func panics(context.Context, once.Run) error {
	time.Sleep(lasts)
	panic("no paper")
}

func exits(context.Context, once.Run) error {
	time.Sleep(lasts)
	runtime.Goexit()
	return nil
}

func untilEnd(ctx context.Context, _ once.Run) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

type badError struct{ text string }

func (e *badError) Error() string { return e.text }

// A run counts from its beginning, and as one that runs until its end is recorded.
func TestARunCountsWhileItLasts(t *testing.T) {
	story(t, func(w *world) {
		c := &counted{world: w, Stats: new(once.Stats), c: w.client()}
		job := w.begin(c.c, once.WithStats(c.Stats))
		c.calls++
		w.pass(lasts)
		c.wantCounts(once.Counts{Runs: 1, Running: 1})
		w.store.Next(asynclocktest.WriteNote.Any, asynclocktest.Slow(time.Second, 0))
		job.end <- nil
		w.pass(time.Second / 2)
		c.wantCounts(once.Counts{Runs: 1, Running: 1})
		<-job.done
		c.wantCounts(took(once.Counts{Done: 1}))
	})
}

// Attempt 2 in a process counts again, but the intervals that it missed do not.
func TestFurtherAttemptsAndMissedIntervalsCount(t *testing.T) {
	story(t, func(w *world) {
		c := &counted{world: w, Stats: new(once.Stats), c: w.client()}
		w.wantRan(w.client())
		w.pass(5 * every)
		c.do(w.Context(), panics)
		want := took(once.Counts{Failed: 1, Missed: 4})
		c.wantCounts(want)
		c.do(w.Context(), fn)
		want.Runs, want.Done, want.Repeated, want.LastTook = 2, 1, 1, 0
		c.wantCounts(want)
		w.pass(3 * every)
		c.do(w.Context(), returning(nil))
		want.Runs, want.Done, want.Missed, want.LastTook, want.Took = 3, 2, 6, lasts, 2*lasts
		c.wantCounts(want)
	})
}

// Every counts each of its calls.
func TestEveryCounts(t *testing.T) {
	story(t, func(w *world) {
		c := &counted{world: w, Stats: new(once.Stats), c: w.client()}
		w.wantRan(w.client())
		e := w.every(c.c, every, fn, once.WithStats(c.Stats))
		w.pass(10*every - time.Second)
		c.calls = 10
		c.wantCounts(once.Counts{Runs: 9, Done: 9, Skipped: 1})
		e.ends(w)
		c.wantCounts(once.Counts{Runs: 9, Done: 9, Skipped: 1})
		w.wantError(once.Every(w.Context(), c.c, key, 0, fn, once.WithStats(c.Stats)), asynclock.ErrInvalidOption)
		c.calls++
		c.wantCounts(once.Counts{Runs: 9, Done: 9, Skipped: 1, Errors: 1})
	})
}

// Many goroutines call, and somebody reads. The sums hold in between.
func TestOneStatsServesSeveralJobs(t *testing.T) {
	story(t, func(w *world) {
		c := &counted{world: w, Stats: new(once.Stats), c: w.client()}
		var all sync.WaitGroup
		for i := range 30 {
			all.Go(func() {
				_, err := once.Do(w.Context(), c.c, string('a'+rune(i%3)), every, fn, once.WithStats(c.Stats))
				w.wantNoError(err)
				if n := c.Counts(); n.Runs != n.Done+n.Failed+n.Unfinished+n.Running {
					w.Errorf("counts: got %+v, want all runs in them", n)
				}
			})
		}
		all.Wait()
		c.calls = 30
		got := c.Counts()
		c.wantCounts(once.Counts{Runs: 3, Done: 3, Held: got.Held, Skipped: got.Skipped})
	})
}

func TestANilStats(t *testing.T) {
	story(t, func(w *world) {
		_, err := once.Do(w.Context(), w.client(), key, every, w.never, once.WithStats(nil))
		w.wantError(err, asynclock.ErrInvalidOption)
		if got := (*once.Stats)(nil).Counts(); got != (once.Counts{}) {
			w.Errorf("counts of a nil Stats: got %+v, want none", got)
		}
	})
}

// The names are part of the API: dashboards have them.
func TestCountsAsJSON(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(once.Counts{Runs: 1, Took: time.Second})
	want := `{"runs":1,"done":0,"failed":0,"unfinished":0,"running":0,"repeated":0,"missed":0,` +
		`"skipped":0,"held":0,"canceled":0,"errors":0,"last_took_ns":0,"longest_took_ns":0,"took_ns":1000000000}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, error %v; want %s", got, err, want)
	}
}
