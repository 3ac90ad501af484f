// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
	"github.com/asynclock/asynclock-go/once"
)

// Jobs, of the keys j1 and so on, run once in each interval. They take a fifth of it at most, so that
// a process that dies leaves time for another attempt.
const (
	jobs     = 2
	interval = 2 * time.Second
	longJob  = interval / 5
)

// errJob is what a job returns that fails. It has run all the same.
var errJob = errors.New("the job has failed")

// jobKeys are those of the jobs.
func jobKeys() (keys []string) {
	for i := range jobs {
		keys = append(keys, fmt.Sprint("j", i+1))
	}
	return keys
}

// runJobs runs all jobs until ctx ends, each in one of two ways.
func (w *worker) runJobs(ctx context.Context) {
	for i, key := range jobKeys() {
		c := &caller{worker: w, rand: rand.New(rand.NewPCG(w.Seed, 2<<32+uint64(i)))}
		j := &runner{caller: c, key: key}
		if c.chance(3) {
			w.others.Go(func() { j.every(ctx) }) // ends with ctx
		} else {
			w.others.Go(func() { j.calls(ctx) }) // ends with ctx
		}
	}
}

// A runner is one process' part in a job.
type runner struct {
	*caller
	key   string
	op    string // of the call that is under way
	asked history.Time
}

func (j *runner) options() once.Option {
	return once.WithLockOptions(asynclock.WithTTL(slices.Min(j.TTLs)))
}

// calls calls Do by a timer of its own, and tells what came of it.
func (j *runner) calls(ctx context.Context) {
	for ; ctx.Err() == nil; nap(ctx, interval/40+j.upTo(interval/20)) {
		j.op, j.asked = j.newOp(), history.Now()
		outcome, err := once.Do(ctx, j.locks, j.key, interval, func(_ context.Context, run once.Run) error {
			return j.run(run, "once.Do")
		}, j.options())
		r := history.Record{
			Kind: history.Round, Op: j.op, Key: j.key, How: "once.Do", Begin: j.asked, End: history.Now(), Every: history.Span(interval),
			Ran: outcome.Ran, Running: outcome.Running, Token: outcome.Last.Token, Attempt: outcome.Last.Attempt, Over: !outcome.Last.Ended.IsZero(),
		}
		if !outcome.Last.Start.IsZero() {
			r.Slot = outcome.Last.Start.UnixNano()
		}
		if err != nil && !errors.Is(err, errJob) {
			r.Error = errorName(err)
		}
		j.history.Add(r)
	}
}

// every leaves the timer to the library, which does not tell what came of a call.
func (j *runner) every(ctx context.Context) {
	j.asked = history.Now()
	for ; ctx.Err() == nil; nap(ctx, interval/20) { // an error that no repetition helps passes here with its fault
		_ = once.Every(ctx, j.locks, j.key, interval, func(_ context.Context, run once.Run) error {
			j.op = j.newOp()
			err := j.run(run, "once.Every")
			j.asked = history.Now()
			return err
		}, j.options())
	}
}

// run is the job. Its lease is in the history, too.
func (j *runner) run(run once.Run, how string) error {
	j.history.Add(history.Record{
		Kind: history.Began, Op: j.op, Key: j.key, Begin: j.asked, End: history.Now(), Token: run.Lease.Token(),
		Slot: run.Start.UnixNano(), Every: history.Span(interval), Attempt: run.Attempt,
	})
	t := task{op: j.op, key: j.key, how: how, ttl: slices.Min(j.TTLs), hold: j.upTo(longJob), writes: j.rand.IntN(3)}
	j.caller.asked.Add(1)
	h := j.granted(t, j.asked, run.Lease)
	h.work()
	h.ask()
	now := history.Now()
	h.history.Add(history.Record{Kind: history.Ended, Op: t.op, Valid: h.valid, Begin: now, End: now, Refused: h.refused})
	if j.chance(4) {
		return errJob
	}
	return nil
}
