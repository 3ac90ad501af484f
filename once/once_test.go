// SPDX-License-Identifier: Apache-2.0

package once_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/once"
)

func TestAJobRunsOnceInAnInterval(t *testing.T) {
	story(t, func(w *world) {
		a, b := w.client(asynclock.WithDescription("a")), w.client(asynclock.WithDescription("b"))
		start := time.Now().UTC()
		first := w.wantRan(a)
		if !first.Start.Equal(start) || !first.Began.Equal(start) || !first.Ended.Equal(start) || first.By != "a" ||
			first.Attempt != 1 || first.Token == 0 || first.Failed || first.Missed != 0 {
			w.Errorf("the first run: got %+v", first)
		}
		time.Sleep(every / 2)
		for _, c := range []*asynclock.Client{a, b} {
			if last := w.wantDone(c); last != first {
				w.Errorf("Last: got %+v, want %+v", last, first)
			}
		}
		time.Sleep(every / 2)
		second := w.wantRan(b)
		if !second.Start.Equal(start.Add(every)) || second.By != "b" || second.Token <= first.Token {
			w.Errorf("the second run: got %+v, want one of the next interval", second)
		}
		w.wantDone(a)
	})
}

// Each process has a timer that is a little early or late.
func TestTimersMayBeEarlyOrLate(t *testing.T) {
	story(t, func(w *world) {
		const intervals = 40
		clients := []*asynclock.Client{w.client(), w.client(), w.client()}
		shifts := []time.Duration{-50 * time.Millisecond, 50 * time.Millisecond, -early + time.Millisecond}
		runs := make(map[time.Time]int)
		begin := time.Now().Add(every)
		for i := range intervals {
			for k, shift := range []int{2, 0, 1} { // in the order of their times
				time.Sleep(time.Until(begin.Add(time.Duration(i)*every + shifts[shift])))
				_, err := once.Do(w.Context(), clients[k], key, every, func(_ context.Context, run once.Run) error {
					runs[run.Start]++
					if run.Missed != 0 {
						w.Errorf("interval %v: got %d missed, want none", run.Start, run.Missed)
					}
					return nil
				})
				w.wantNoError(err)
			}
		}
		for start, n := range runs {
			if n != 1 {
				w.Errorf("interval %v: got %d runs, want 1", start, n)
			}
		}
		if len(runs) != intervals {
			w.Errorf("intervals with a run: got %d, want %d", len(runs), intervals)
		}
	})
}

func TestACallThatIsTooEarlyIsOfTheIntervalBefore(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.wantRan(c)
		time.Sleep(every - early - time.Microsecond)
		w.wantDone(c)
		time.Sleep(time.Microsecond)
		w.wantRan(c)
	})
}

func TestAnOffsetMovesIntervals(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		start := time.Now().UTC()
		offset := once.WithOffset(20 * time.Second)
		if run := w.wantRan(c, offset); !run.Start.Equal(start.Add(20*time.Second - every)) {
			w.Errorf("Start: got %v, want 20 s after a minute began", run.Start)
		}
		time.Sleep(20*time.Second - early)
		if run := w.wantRan(c, offset); !run.Start.Equal(start.Add(20 * time.Second)) {
			w.Errorf("Start: got %v, want 20 s after a minute began", run.Start)
		}
	})
}

func TestAClockSetBackOrForward(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.wantRan(c)
		w.ahead.Store(int64(-10 * every))
		w.wantDone(c)
		time.Sleep(10 * every)
		w.wantDone(c) // it has caught up
		time.Sleep(every)
		w.wantRan(c)
		w.ahead.Store(int64(-8 * every)) // forward by two
		w.wantRan(c)
		w.wantDone(c)
		time.Sleep(every)
		w.wantRan(c)
	})
}

// A clock that was ahead for a run holds up nothing, once it is right again.
func TestAClockThatWasAheadForARun(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.wantRan(c)
		w.ahead.Store(int64(100 * every))
		far := w.wantRan(c)
		w.ahead.Store(0)
		w.wantDone(c)
		for range 99 {
			time.Sleep(every)
			if run := w.wantRan(c); run.Attempt != 1 || run.Missed != 0 {
				w.Fatalf("a run behind a clock that was ahead: got %+v, want attempt 1 with none missed", run)
			}
			w.wantDone(c)
		}
		time.Sleep(every)
		w.wantDone(c) // it ran when the clock was ahead
		time.Sleep(every)
		if run := w.wantRan(c); run.Missed != 0 || run.Start.Sub(far.Start) != every {
			w.Errorf("the run after those: got %+v, want none missed", run)
		}
	})
}

// Intervals that became longer begin before the last run. That was in the present one.
func TestIntervalsThatBecomeLonger(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		begin := time.Now().Truncate(time.Hour).Add(time.Hour)
		time.Sleep(time.Until(begin))
		w.wantRan(c)
		time.Sleep(30 * every)
		w.wantRan(c)
		o, err := once.Do(w.Context(), c, key, time.Hour, w.never)
		if w.wantNoError(err); o.Ran {
			w.Error("the job ran again in the hour")
		}
		time.Sleep(30 * every)
		o, err = once.Do(w.Context(), c, key, time.Hour, fn)
		if w.wantNoError(err); !o.Ran {
			w.Error("the job did not run in the next hour")
		}
	})
}

// Whether that run has ended does not matter: its interval is not the present one.
func TestAClockSetBackRepeatsNoRunThatDied(t *testing.T) {
	story(t, func(w *world) {
		dead, c := w.client(), w.client()
		job := w.begin(dead)
		w.dies(0)
		w.ahead.Store(int64(-10 * every))
		w.wantDone(c)
		w.ahead.Store(0)
		w.wantRan(c)
		job.ends(nil)
	})
}

func TestAProcessThatDiesIsFollowedByAnotherAttempt(t *testing.T) {
	story(t, func(w *world) {
		dead, c := w.client(), w.client()
		job := w.begin(dead)
		w.wantRunning(c)
		w.dies(0)
		if job.ctx.Err() == nil {
			w.Error("the context of a job whose lease is lost has not ended")
		}
		run := w.wantRan(c)
		if run.Attempt != 2 || run.Token <= job.run.Lease.Token() {
			w.Errorf("the next run: got %+v, want attempt 2 with a token above %d", run, job.run.Lease.Token())
		}
		job.ends(nil) // it went on
		w.wantError(job.err, asynclock.ErrLost)
		if o := job.outcome; !o.Ran || !o.Last.Ended.IsZero() {
			w.Errorf("the outcome of the one that lost its lease: got %+v, want that its end is not recorded", o)
		}
		if last := w.wantDone(c); last != run {
			w.Errorf("the record: got %+v, want %+v: a process that lost its lease changes nothing", last, run)
		}
	})
}

func TestAJobOfOneAttemptIsNotRepeated(t *testing.T) {
	story(t, func(w *world) {
		dead, c := w.client(), w.client()
		job := w.begin(dead, once.WithAttempts(1))
		w.dies(0)
		if last := w.wantDone(c, once.WithAttempts(1)); !last.Ended.IsZero() || last.Attempt != 1 {
			w.Errorf("Last: got %+v, want a run that has not ended", last)
		}
		w.wantRan(c, once.WithAttempts(2))
		job.ends(nil)
		time.Sleep(every)
		w.wantRan(c, once.WithAttempts(1))
	})
}

func TestARunLongerThanItsInterval(t *testing.T) {
	story(t, func(w *world) {
		a, b := w.client(), w.client()
		job := w.begin(a)
		time.Sleep(3*every + every/2)
		w.wantRunning(b)
		job.ends(nil)
		w.wantNoError(job.err)
		var got once.Run
		_, err := once.Do(w.Context(), b, key, every, func(_ context.Context, run once.Run) error {
			got = run
			return nil
		})
		w.wantNoError(err)
		if got.Missed != 2 || got.Previous == nil || !got.Previous.Start.Equal(job.run.Start) || got.Attempt != 1 ||
			got.Previous.Ended.Sub(got.Previous.Began) != 3*every+every/2 {
			w.Errorf("the run after three and a half intervals: got %+v after %+v, want 2 missed", got, got.Previous)
		}
	})
}

// The second attempt has to catch up with what the first one had to.
func TestAnotherAttemptMissesWhatTheFirstMissed(t *testing.T) {
	story(t, func(w *world) {
		dead, c := w.client(), w.client()
		w.wantRan(c)
		time.Sleep(5 * every)
		job := w.begin(dead)
		w.dies(0)
		if run := w.wantRan(c); run.Missed != 4 || job.run.Missed != 4 {
			w.Errorf("missed: got %d, then %d; want 4 both", job.run.Missed, run.Missed)
		}
		job.ends(nil)
	})
}

func TestAnErrorCountsAsARun(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		failure := errors.New("no paper\x00" + strings.Repeat("\x01\xff", 4000))
		o, err := once.Do(w.Context(), c, key, every, func(context.Context, once.Run) error { return failure })
		w.wantError(err, failure)
		if err != failure { //nolint:errorlint // is it the very same value?
			w.Errorf("got %T, want the job's own error", err)
		}
		last := w.wantDone(c)
		if !o.Ran || !last.Failed || !strings.HasPrefix(last.Message, "no paper") || last.Ended.IsZero() {
			w.Errorf("the record: got %+v, want the beginning of the error", last)
		}
	})
}

func TestAJobThatIsInterruptedHasNotEnded(t *testing.T) {
	story(t, func(w *world) {
		a, b := w.client(), w.client()
		ctx, cancel := context.WithCancel(w.Context())
		job := w.beginUnder(ctx, a)
		cancel()
		<-job.ctx.Done()
		job.ends(context.Canceled)
		w.wantError(job.err, context.Canceled)
		if run := w.wantRan(b); run.Attempt != 2 {
			w.Errorf("the next run: got %+v, want attempt 2", run)
		}
	})
}

// The end of the context does not undo what was done.
func TestAJobThatEndsAfterItsContextHasEnded(t *testing.T) {
	story(t, func(w *world) {
		a, b := w.client(), w.client()
		ctx, cancel := context.WithCancel(w.Context())
		job := w.beginUnder(ctx, a)
		cancel()
		w.store.Next(asynclocktest.WriteNote.Any, asynclocktest.LoseReply)
		job.ends(nil)
		w.wantNoError(job.err)
		w.wantDone(b)
	})
}

func TestRecordingTheEndIsBoundedAfterTheContext(t *testing.T) {
	story(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		job := w.beginUnder(ctx, w.client())
		w.store.Every(asynclocktest.WriteNote.Any, asynclocktest.Hang)
		cancel()
		start := time.Now()
		job.ends(nil)
		w.wantError(job.err, asynclock.ErrOutcomeUnknown)
		if took := time.Since(start); took > 2*time.Second {
			w.Errorf("Do ended %v after its context, want a second or little more", took)
		}
	})
}

func TestAJobThatPanicsHasNotEnded(t *testing.T) {
	story(t, func(w *world) {
		a, b := w.client(), w.client()
		func() {
			defer func() {
				if recover() == nil {
					w.Error("the panic of a job was swallowed")
				}
			}()
			_, _ = once.Do(w.Context(), a, key, every, func(context.Context, once.Run) error { panic("no paper") })
		}()
		if run := w.wantRan(b); run.Attempt != 2 {
			w.Errorf("the next run: got %+v, want attempt 2", run)
		}
	})
}

func TestAJobIsNotBegunBeforeThatIsRecorded(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		stop := w.store.Every(asynclocktest.WriteNote.Any, asynclocktest.Fail(asynclock.ErrDenied))
		_, err := once.Do(w.Context(), c, key, every, w.never)
		w.wantError(err, asynclock.ErrDenied)
		stop()
		stop = w.store.Every(asynclocktest.WriteNote.Any, asynclocktest.Hang)
		ctx, cancel := context.WithTimeout(w.Context(), 3*time.Second)
		defer cancel()
		_, err = once.Do(ctx, c, key, every, w.never)
		w.wantError(err, context.DeadlineExceeded)
		stop()
		// It was not begun. Another process finds the key free.
		if run := w.wantRan(w.client()); run.Attempt != 1 {
			w.Errorf("the next run: got %+v, want attempt 1", run)
		}
	})
}

func TestAnEndThatIsNotRecordedIsAnError(t *testing.T) {
	story(t, func(w *world) {
		a, b := w.client(), w.client()
		job := w.begin(a)
		stop := w.store.Every(asynclocktest.WriteNote.Any, asynclocktest.Fail(asynclock.ErrDenied))
		failure := errors.New("no paper")
		job.ends(failure)
		stop()
		w.wantError(job.err, failure, asynclock.ErrDenied)
		if o := job.outcome; !o.Ran || !o.Last.Ended.IsZero() {
			w.Errorf("the outcome: got %+v, want a run whose end is not recorded", o)
		}
		if run := w.wantRan(b); run.Attempt != 2 {
			w.Errorf("the next run: got %+v, want attempt 2", run)
		}
	})
}

// A run that the store has forgotten is one that nobody knows of, also in the process that ran it.
func TestAStoreThatForgetsRunsTheJobAgain(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.wantRan(c)
		w.forgot.Store(true)
		if run := w.wantRan(c); run.Attempt != 1 {
			w.Errorf("the next run: got %+v, want attempt 1", run)
		}
	})
}

// Between a look and the lock, another process may have run the job.
func TestTheRecordIsReadAgainUnderTheLock(t *testing.T) {
	story(t, func(w *world) {
		a, b := w.client(), w.client()
		w.store.Next(asynclocktest.Acquire.From(0), func(_ context.Context, carry func()) error {
			w.wantRan(b)
			carry()
			return nil
		})
		w.wantDone(a)
	})
}

func TestAnotherInTheSameClientRunsTheJob(t *testing.T) {
	story(t, func(w *world) {
		c := w.client(asynclock.WithMinHold(time.Hour), asynclock.WithRetention(time.Hour), asynclock.WithWait(time.Hour),
			asynclock.WithReentry(true))
		_, err := once.Do(w.Context(), c, key, every, func(ctx context.Context, _ once.Run) error {
			o, err := once.Do(ctx, c, key, every, w.never) // no re-entry
			if err != nil || !o.Running {
				w.Errorf("Do under Do: got %+v, error %v; want it running", o, err)
			}
			return nil
		})
		w.wantNoError(err)
		l, err := w.client().TryLock(w.Context(), key) // nothing holds the key back
		if err != nil {
			w.Fatal(err)
		}
		_ = l.Unlock(w.Context())
	})
}

// Both calls have looked before either has locked.
func TestOneOfTwoThatTryAtOnceRunsTheJob(t *testing.T) {
	story(t, func(w *world) {
		a, b := w.client(), w.client()
		w.store.Next(asynclocktest.Acquire.From(0), func(_ context.Context, carry func()) error {
			job := w.begin(b)
			carry()
			defer job.ends(nil)
			return nil
		})
		if o, err := once.Do(w.Context(), a, key, every, w.never); err != nil || !o.Running || o.Ran {
			w.Errorf("Do: got %+v, error %v; want another to run the job", o, err)
		}
	})
}

func TestWhatACallCosts(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.wantRan(c)
		if n := len(w.store.Calls(nil)); n != 6 {
			w.Errorf("requests of a run: got %d, want 6", n)
		}
		w.wantDone(c)
		if n := len(w.store.Calls(nil)); n != 7 {
			w.Errorf("requests of a call that finds the job done: got %d, want 1", n-6)
		}
	})
}

func TestErrorsOfTheStoreAreThoseOfDo(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.store.Next(asynclocktest.ReadNote.Any, asynclocktest.Refuse)
		_, err := once.Do(w.Context(), c, key, every, w.never)
		w.wantError(err, asynclock.ErrUnreachable)
		w.store.Next(asynclocktest.Acquire.Any, asynclocktest.Refuse)
		_, err = once.Do(w.Context(), c, key, every, w.never)
		w.wantError(err, asynclock.ErrUnreachable)
	})
}
