// SPDX-License-Identifier: Apache-2.0

package once_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/once"
)

// An everyday is an Every in a goroutine of its own.
type everyday struct {
	cancel context.CancelFunc
	done   chan error
}

func (w *world) every(c *asynclock.Client, every time.Duration, fn func(context.Context, once.Run) error, options ...once.Option) *everyday {
	ctx, cancel := context.WithCancel(w.Context())
	e := &everyday{cancel, make(chan error, 1)}
	go func() { e.done <- once.Every(ctx, c, key, every, fn, options...) }()
	w.Cleanup(cancel)
	synctest.Wait()
	return e
}

// A diary has the runs of jobs, and how long after the beginnings of their intervals they began.
type diary struct {
	mu   sync.Mutex
	runs []once.Run
	late []time.Duration
}

func (d *diary) add(run once.Run) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.runs, d.late = append(d.runs, run), append(d.late, time.Since(run.Start))
}

// job is one that only adds itself.
func (d *diary) job(_ context.Context, run once.Run) error {
	d.add(run)
	return nil
}

func (d *diary) read() (runs []once.Run, late []time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.runs), slices.Clone(d.late)
}

func (e *everyday) ends(w *world) {
	w.Helper()
	e.cancel()
	synctest.Wait()
	select {
	case err := <-e.done:
		w.wantError(err, context.Canceled)
	default:
		w.Fatal("Every goes on after the end of its context")
	}
}

func TestEveryRunsAtOnceAndThenAsIntervalsBegin(t *testing.T) {
	story(t, func(w *world) {
		begin := time.Now()
		w.pass(every / 3)
		var d diary
		job := func(_ context.Context, run once.Run) error {
			d.add(run)
			return errors.New("that ends nothing")
		}
		e, other := w.every(w.client(), every, job), w.every(w.client(), every, job)
		runs, late := d.read()
		if len(runs) != 1 || late[0] != every/3 {
			w.Fatalf("runs at once: got %d, want 1", len(runs))
		}
		w.pass(20*every - every/3 - time.Second)
		if runs, late = d.read(); len(runs) != 20 {
			w.Errorf("runs in 20 intervals: got %d, want 20", len(runs))
		}
		for i, run := range runs {
			if want := begin.Add(time.Duration(i) * every); !run.Start.Equal(want) || run.Missed != 0 || run.Attempt != 1 {
				w.Errorf("run %d: got %+v, want that of %v", i, run, want)
			}
			if i > 0 && (late[i] < 0 || late[i] > every/100) {
				w.Errorf("run %d: got it %v after its interval began, want 0 to %v", i, late[i], every/100)
			}
		}
		e.ends(w)
		other.ends(w)
	})
}

// The calls of processes do not come together.
func TestEverySpreadsItsCalls(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		var d diary
		e := w.every(c, every, d.job)
		w.pass(10 * every)
		seen := make(map[time.Duration]bool)
		_, late := d.read()
		for _, after := range late {
			seen[after] = true
		}
		if len(seen) < 5 {
			w.Errorf("times after the beginning of 10 intervals: got %d different ones, want 5 or more", len(seen))
		}
		e.ends(w)
	})
}

func TestEveryCallsAgainWhileAnotherRunsTheJob(t *testing.T) {
	story(t, func(w *world) {
		dead, c := w.client(), w.client()
		job := w.begin(dead)
		var d diary
		e := w.every(c, every, d.job)
		w.dies(0)
		w.pass(7 * time.Second)
		if runs, _ := d.read(); len(runs) != 1 || runs[0].Attempt != 2 {
			w.Errorf("runs 7 s after the end of a dead process' TTL: got %+v, want attempt 2", runs)
		}
		job.ends(nil)
		e.ends(w)
	})
}

func TestEveryCallsAgainWhileTheStoreFails(t *testing.T) {
	story(t, func(w *world) {
		stop := w.store.Every(nil, asynclocktest.Refuse)
		var d diary
		e := w.every(w.client(), every, d.job)
		w.pass(every / 2)
		n := len(w.store.Calls(asynclocktest.ReadNote.Any))
		if n < 5 || n > 8 {
			w.Errorf("requests in half a minute: got %d, want one each 4 to 6 s", n)
		}
		stop()
		w.pass(7 * time.Second)
		if runs, _ := d.read(); len(runs) != 1 {
			w.Errorf("runs after the store came back: got %d, want 1", len(runs))
		}
		e.ends(w)
	})
}

func TestEveryRepeatsARunWhoseLeaseWasLost(t *testing.T) {
	story(t, func(w *world) {
		var d diary
		e := w.every(w.client(), every, func(ctx context.Context, run once.Run) error {
			if d.add(run); run.Attempt == 1 {
				<-ctx.Done()
			}
			return nil
		}, once.WithLockOptions(asynclock.WithMaxHold(5*time.Second)))
		w.pass(every / 2)
		if runs, _ := d.read(); len(runs) != 2 || runs[1].Attempt != 2 {
			w.Errorf("attempts: got %+v, want 2", runs)
		}
		e.ends(w)
	})
}

func TestEveryGoesOnBehindARunLongerThanItsInterval(t *testing.T) {
	story(t, func(w *world) {
		var d diary
		first := true
		e := w.every(w.client(), every, func(_ context.Context, run once.Run) error {
			d.add(run)
			if first {
				first = false
				time.Sleep(2*every + every/2)
			}
			return nil
		})
		w.pass(3*every - time.Second)
		if runs, _ := d.read(); len(runs) != 2 || runs[1].Missed != 1 || runs[1].Start.Sub(runs[0].Start) != 2*every {
			w.Errorf("runs: got %+v, want one more, in the third interval, with 1 missed", runs)
		}
		e.ends(w)
	})
}

// The clock of this process and that of the store run apart in a long interval.
func TestEveryLooksAtTheStoresClockNowAndThen(t *testing.T) {
	story(t, func(w *world) {
		const day = 24 * time.Hour
		var d diary
		e := w.every(w.client(), day, d.job)
		w.pass(time.Hour)
		w.ahead.Store(int64(30 * time.Minute)) // the store's clock was fast, or ours was slow
		w.pass(22*time.Hour + 29*time.Minute)
		if runs, _ := d.read(); len(runs) != 1 {
			w.Errorf("runs before the store's day is over: got %d, want 1", len(runs))
		}
		w.pass(time.Minute + 2*time.Second)
		if runs, _ := d.read(); len(runs) != 2 {
			w.Errorf("runs after the store's day is over: got %d, want 2", len(runs))
		}
		e.ends(w)
	})
}

func TestEveryEndsWithWhatNoRepetitionHelps(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		e := w.every(c, every, fn)
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		_ = c.Close(ctx)
		w.pass(every + time.Second)
		select {
		case err := <-e.done:
			w.wantError(err, asynclock.ErrClosed)
		default:
			w.Error("Every goes on with a client that was closed")
		}
	})
}
