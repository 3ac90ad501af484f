// SPDX-License-Identifier: Apache-2.0

package once

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// Stats counts what calls came to in this process. The zero Stats is ready. It may serve several jobs, and any number
// of goroutines. It must not be copied. [LastRun] says what came of a job in all processes.
//
//	var report once.Stats
//	expvar.Publish("report", expvar.Func(func() any { return report.Counts() }))
//	err := once.Every(ctx, locks, "report", 24*time.Hour, fn, once.WithStats(&report))
type Stats struct {
	mu     sync.Mutex
	counts Counts
}

// Counts is what a [Stats] has counted since it was made. Counts can be compared.
//
// Each call of [Do] counts in one of Runs, Skipped, Held, Canceled and Errors. A run counts when it begins, any other call when it
// returns. Each call that [Every] makes of Do counts likewise. Runs is the sum of Done, Failed, Unfinished and Running.
type Counts struct {
	// Runs is how many runs have begun here.
	Runs int64 `json:"runs"`
	// Done is how many runs ended well: the function returned nil, and that is recorded.
	Done int64 `json:"done"`
	// Failed is how many runs failed: the function returned an error that is recorded, or it panicked, or it ended
	// its goroutine.
	Failed int64 `json:"failed"`
	// Unfinished is how many runs returned without a record of their end. The lease was lost, or the run was told to
	// stop, or the store failed. Another attempt may follow.
	Unfinished int64 `json:"unfinished"`
	// Running is how many run now. A run lasts until its end is recorded.
	Running int64 `json:"running"`
	// Repeated is how many of the runs were further attempts in their interval.
	Repeated int64 `json:"repeated"`
	// Missed is how many intervals had no run before those of Runs. Further attempts don't count theirs again.
	Missed int64 `json:"missed"`

	// Skipped is how many calls found nothing to do: the job was done in the interval, or its attempts were used up.
	Skipped int64 `json:"skipped"`
	// Held is how many calls found the key held: another runs the job, in this process or elsewhere.
	Held int64 `json:"held"`
	// Canceled is how many calls had their ctx cancelled before a run began, as at the end of a process.
	Canceled int64 `json:"canceled"`
	// Errors is how many calls ended with another error before a run began: the store failed, or a deadline passed, or the
	// arguments were refused. Errors of the function are in Failed.
	Errors int64 `json:"errors"`

	// LastTook is how long the function took in the run that has ended last, however it ended.
	LastTook time.Duration `json:"last_took_ns"`
	// LongestTook is how long it took at most.
	LongestTook time.Duration `json:"longest_took_ns"`
	// Took is how long it took in all runs together that have ended.
	Took time.Duration `json:"took_ns"`
}

// Counts returns what was counted so far. It costs no request. A nil Stats has counted nothing.
func (s *Stats) Counts() Counts {
	if s == nil {
		return Counts{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// WithStats counts in s what the calls come to. Processes may differ in it. Default: nothing is counted. A nil s is
// [asynclock.ErrInvalidOption].
func WithStats(s *Stats) Option {
	return func(j *job) error {
		if s == nil {
			return fmt.Errorf("%w: nil stats", asynclock.ErrInvalidOption)
		}
		j.stats = s
		return nil
	}
}

// add changes the counts. A nil Stats counts nothing.
func (s *Stats) add(change func(c *Counts)) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.counts)
}

// count counts a call that has run nothing.
func (s *Stats) count(o *Outcome, err error) {
	canceled := errors.Is(err, context.Canceled) // may ask an error of the application
	s.add(func(c *Counts) {
		switch {
		case canceled:
			c.Canceled++
		case err != nil:
			c.Errors++
		case o.Running:
			c.Held++
		default:
			c.Skipped++
		}
	})
}

// A tally counts one run.
type tally struct {
	stats    *Stats
	began    time.Time
	took     time.Duration // of the function
	returned bool
}

func (s *Stats) begin(run *RunInfo) tally {
	s.add(func(c *Counts) {
		c.Runs++
		c.Running++
		if run.Attempt > 1 {
			c.Repeated++
		} else {
			c.Missed += int64(run.Missed)
		}
	})
	return tally{stats: s, began: time.Now()}
}

// stop stops the time. It is called when the function has returned.
func (t *tally) stop() { t.took, t.returned = time.Since(t.began), true }

// end counts how the run has ended. It is called in any case.
func (t *tally) end(last *RunInfo) {
	t.stats.add(func(c *Counts) {
		switch {
		case !t.returned:
			t.took = time.Since(t.began)
			c.Failed++
		case last.Ended.IsZero():
			c.Unfinished++
		case last.Failed:
			c.Failed++
		default:
			c.Done++
		}
		c.Running--
		c.LastTook, c.LongestTook, c.Took = t.took, max(c.LongestTook, t.took), c.Took+t.took
	})
}
