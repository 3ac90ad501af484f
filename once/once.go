// SPDX-License-Identifier: Apache-2.0

package once

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/backoff"
	"github.com/asynclock/asynclock-go/internal/failure"
)

// A Run is what the job's function gets.
type Run struct {
	Lease    *asynclock.Lease // of the key; the function must not unlock it, nor set its note, which is the record
	Start    time.Time        // of the interval, by the store's clock
	Attempt  int              // from 1; more than 1 if an earlier attempt in this interval has not ended
	Missed   int              // how many whole intervals had no run since the last one; catching up is for the function
	Previous *RunInfo         // the last run or attempt; nil: none is known
}

// An Outcome says what a call found or did. If it has neither Ran nor Running, the job was done before
// in this interval, or its attempts are used up, or a process of a later release has begun it.
type Outcome struct {
	Ran     bool    // this call has called the function
	Running bool    // another has the key at present
	Last    RunInfo // the last run that is known; with Running, maybe the one before; zero: none
}

// Do calls fn if the job has not run yet in the present interval, and nobody runs it now. The context of
// fn ends with ctx, or when the lease ends. The package comment says what an interval is.
//
// A run has ended when fn has returned, also with an error, and that is recorded: the job is not repeated in this
// interval. If the process dies or stalls between the two, the job is repeated although it was done.
// A run has not ended if ctx had ended before fn returned an error, if the lease was lost, or if fn panicked.
// Then the next call in the interval is another attempt. The same holds if fn has unlocked the lease. Then the error
// is [asynclock.ErrInvalidOption] and [asynclock.ErrUnlocked].
//
// A store that was started or promoted lately grants nothing for a while ([asynclock.ErrGrace]). Do waits for that if
// the interval lasts longer, because nobody can know yet whether another runs the job.
//
// The error is fn's, or that of the lock and its note: those of [asynclock.Client.TryLock],
// [asynclock.Client.Note] and [asynclock.Lease.SetNote]. If both failed, it matches both. There is no error if there was nothing
// to do. After an error of the note, fn was not called, unless Ran is set. Then the run is not recorded.
// [asynclock.ErrForeignData] also means that the note of the key is no record of a run, or one of a later release that does
// not say in which interval that was. An interval
// outside [MinInterval] to [MaxInterval] is [asynclock.ErrInvalidOption].
func Do(
	ctx context.Context, locks *asynclock.Client, key string, every time.Duration,
	fn func(ctx context.Context, run Run) error, options ...Option,
) (Outcome, error) {
	j, err := newJob(locks, key, every, fn, options)
	if err != nil {
		return Outcome{}, err
	}
	r := j.do(ctx)
	return r.outcome, r.err()
}

// LastRun returns the last run of a job, or a zero RunInfo if none is known. The errors are those of
// [asynclock.Client.Note], and [asynclock.ErrForeignData] if the note of the key is no record of a run, or one of a later release.
func LastRun(ctx context.Context, locks *asynclock.Client, key string) (RunInfo, error) {
	n, err := locks.Note(ctx, key)
	if err != nil {
		return RunInfo{}, err
	}
	last, err := decode(n)
	if last.later {
		err = errLater
	}
	if err != nil {
		return RunInfo{}, failed(key, err)
	}
	return last.public(), nil
}

// public is what users see of a run.
func (f found) public() RunInfo {
	if f.info == nil {
		return RunInfo{}
	}
	return *f.info
}

func failed(key string, err error) error { return &asynclock.Error{Op: "run once", Key: key, Err: err} }

// A job is what Do and Every are called with.
type job struct {
	locks    *asynclock.Client
	key      string
	fn       func(ctx context.Context, run Run) error
	schedule schedule
	attempts int // 0: any number
	lock     []asynclock.LockOption
	stats    *Stats // nil: nothing is counted
}

func newJob(
	locks *asynclock.Client, key string, every time.Duration, fn func(context.Context, Run) error, options []Option,
) (*job, error) {
	j := &job{locks: locks, key: key, fn: fn, schedule: schedule{every: every}}
	err := j.set(options)
	if err == nil {
		err = j.checkLock()
	}
	if err != nil {
		j.stats.count(nil, err)
	}
	return j, err
}

// set applies the options. It goes on after a bad one, because the next may say where the error counts.
func (j *job) set(options []Option) error {
	var first error
	if j.fn == nil {
		first = fmt.Errorf("%w: nil function", asynclock.ErrInvalidOption)
	}
	for _, o := range options {
		if o == nil {
			first = cmp.Or(first, fmt.Errorf("%w: nil option", asynclock.ErrInvalidOption))
		} else {
			first = cmp.Or(first, o(j))
		}
	}
	if first = cmp.Or(first, j.schedule.check()); first != nil {
		return failed(j.key, first)
	}
	return nil
}

// checkLock returns the error of options that only the lock can judge. Otherwise it would show when the job is due.
func (j *job) checkLock() error {
	// A minimum hold is not needed, and nobody could tell a key that is held back from one whose job
	// runs.
	j.lock = slices.Concat([]asynclock.LockOption{asynclock.WithTTL(j.schedule.lockTTL(j.locks.TTL()))}, j.lock, []asynclock.LockOption{
		asynclock.WithWait(0), asynclock.WithReentry(false), asynclock.WithMinHold(0), asynclock.WithRetention(0),
	})
	ended, end := context.WithCancel(context.Background())
	end() // so that the lock ends after the check of its arguments, and nothing is sent
	if _, err := j.locks.Lock(ended, j.key, j.lock...); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// do makes one call, and counts it.
func (j *job) do(ctx context.Context) *round {
	r := j.rounds(ctx)
	if !r.outcome.Ran {
		j.stats.count(&r.outcome, r.lockErr)
	}
	return r
}

// rounds repeats a round while the store grants nothing yet, as long as the interval lasts. It returns the last one.
func (j *job) rounds(ctx context.Context) *round {
	for {
		r := &round{job: j}
		r.do(ctx)
		var grace *asynclock.GraceError
		if !errors.As(r.lockErr, &grace) || r.outcome.Ran || r.left() <= grace.Remaining {
			return r
		}
		if backoff.Sleep(ctx, max(grace.Remaining, leastPause)); ctx.Err() != nil {
			return r
		}
	}
}

// A round is one try of a call.
type round struct {
	*job

	clock   clock     // as of the last reading
	start   time.Time // of the present interval
	last    found
	holder  string // of the key, as it describes itself
	outcome Outcome
	settled bool  // nothing is left to do in this interval
	fnErr   error // of the job's function
	lockErr error // of everything else
}

// err is what Do returns.
func (r *round) err() error {
	return failure.Both(r.fnErr, r.lockErr)
}

// do looks before it locks. So most calls cost one request, and don't get in the way of the one that
// runs the job.
func (r *round) do(ctx context.Context) {
	held, err := r.look(ctx)
	if err != nil {
		r.lockErr = err
		return
	}
	if held || r.settled {
		r.outcome.Running = held && (!r.settled || r.last.public().Ended.IsZero())
		return
	}
	called := false
	r.lockErr = r.locks.WithLock(ctx, r.key, func(leaseCtx context.Context, lease *asynclock.Lease) error {
		called = true
		return r.underLease(ctx, leaseCtx, lease)
	}, r.lock...)
	if !called && errors.Is(r.lockErr, asynclock.ErrHeld) {
		r.outcome.Running, r.lockErr = true, nil
	}
}

// look reads the record of the last run, and decides whether there is anything to do. It reports whether
// the key is held.
func (r *round) look(ctx context.Context) (held bool, err error) {
	n, err := r.locks.Note(ctx, r.key)
	if err != nil {
		return false, err
	}
	r.clock, r.holder = clock{store: n.Time, here: time.Now()}, n.Holder
	r.start = r.schedule.startAt(n.Time)
	if r.last, err = decode(n); err != nil {
		r.settled = errors.Is(err, errLater)
		return false, failed(r.key, err)
	}
	r.outcome.Last = r.last.public()
	r.settled = r.isDone()
	return n.Held, nil
}

// isDone reports whether there is nothing to do in the present interval. Whether the run of a later
// release has ended, only processes of that release know.
func (r *round) isDone() bool {
	info := r.last.info
	switch {
	case r.last.isFree(r.start, r.schedule.every):
		return false
	case r.last.later, !r.last.start.Equal(r.start):
		return true
	}
	return !info.Ended.IsZero() || r.attempts > 0 && info.Attempt >= r.attempts
}

// underLease runs the job, unless another process has run it since the first look.
func (r *round) underLease(ctx, leaseCtx context.Context, lease *asynclock.Lease) error {
	if _, err := r.look(leaseCtx); err != nil || r.settled {
		return err
	}
	run := r.next(lease)
	if err := r.record(leaseCtx, lease, &run); err != nil {
		return err // nobody would know of the run
	}
	r.outcome = Outcome{Ran: true, Last: run}
	counted := r.stats.begin(&run)
	defer func() { counted.end(&r.outcome.Last) }() // also if the function panics
	r.fnErr = r.fn(leaseCtx, Run{Lease: lease, Start: run.Start, Attempt: run.Attempt, Missed: run.Missed, Previous: r.last.info})
	counted.stop()
	if r.fnErr != nil && ctx.Err() != nil {
		return nil // it was told to stop, so it has not ended
	}
	run.Ended = r.clock.now().UTC().Truncate(time.Microsecond)
	if r.fnErr != nil {
		run.Failed, run.Message = true, r.fnErr.Error()
	}
	ending, cancel := lasting(ctx)
	defer cancel()
	if err := r.record(ending, lease, &run); err != nil {
		return afterEnd(lease, err)
	}
	r.outcome.Last, r.settled = run, true
	return nil
}

// next describes the run that is about to begin.
func (r *round) next(lease *asynclock.Lease) RunInfo {
	run := RunInfo{
		Start: r.start, Began: r.clock.store.UTC(), By: r.holder, Attempt: 1, Token: lease.Token(),
	}
	switch last := r.last.info; {
	case r.last.start.IsZero():
	case r.last.start.Equal(r.start):
		run.Attempt, run.Missed = min(last.Attempt+1, mostCount), last.Missed
	default:
		run.Missed = r.schedule.missed(r.last.lastStart(), r.start)
	}
	return run
}

func (r *round) record(ctx context.Context, lease *asynclock.Lease, run *RunInfo) error {
	return lease.SetNote(ctx, run.encode(r.last.with(run.Start, r.schedule.every)), r.schedule.noteTTL())
}

// afterEnd returns the error of a run whose end could not be recorded. If the lease was lost, its unlock says so.
func afterEnd(lease *asynclock.Lease, err error) error {
	switch cause := lease.Err(); {
	case errors.Is(cause, asynclock.ErrLost):
		return nil
	case errors.Is(cause, asynclock.ErrUnlocked):
		return failed(lease.Key(), fmt.Errorf("%w: the function has unlocked the lease, so the end of the run is not recorded: %w", asynclock.ErrInvalidOption, err))
	}
	return err
}

// farewell is for how long the end of a run is recorded after its context has ended. A store that is
// nearby answers in that time.
const farewell = time.Second

// lasting returns a context that ends a little after ctx.
func lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	ending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	// The goroutine ends with ending, which its user cancels.
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(farewell)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-ending.Done():
		}
	})
	return ending, func() {
		stop()
		cancel()
	}
}
