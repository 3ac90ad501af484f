// SPDX-License-Identifier: Apache-2.0

// Package check says whether a history is one that the library promises.
//
// Each rule is judged by itself, from what the processes and resources told, so
// that one mistake in here does not hide all others; the models of the lock and of a key
// that is shared, which porcupine searches, repeat in other words what the rules of overlap,
// permits and order say. check.go begins it, and gather.go reads the records. Each other file has a rule,
// except figures.go.
package check

import (
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// Limits are what the rules about waiting need to know of the run.
type Limits struct {
	// Repair is how long a key may be of no use to those who wait for it, after
	// something broke and works again.
	Repair time.Duration
	// Turns is how long it takes until everyone else has had a turn.
	Turns time.Duration
}

// A Violation is a promise that was not kept.
type Violation struct {
	Rule string
	Key  string
	Text string
}

func (v Violation) String() string { return fmt.Sprintf("%s: key %q: %s", v.Rule, v.Key, v.Text) }

// A Report is what there is to say about a history.
type Report struct {
	Span       time.Duration // from the first request to the last answer
	Leases     int
	Shared     int            // of these, of readers
	Permits    int            // of these, of permits
	Parts      int            // of these, of leases over several keys
	Behind     int            // readers that came in although a writer was queued, and may have
	Moved      int            // readers that came in although a writer was queued, whom a fault may have moved: not judged
	Unheard    time.Duration  // how long after the writer's place the last of these asked whose client had not heard of it
	Looks      int            // at who leads
	Runs       int            // of jobs that run once in each interval, and attempts
	Repeats    int            // of these, in an interval that had a run which ended, where the store may have lost the record
	Slots      int            // intervals that have a run
	Reached    int            // intervals in which a call was told that nothing is left to do
	Due        int            // intervals in whose second half the store could be reached
	Firm       int            // of these, with so few faults that they must have a run
	Undone     int            // of the others, without one
	Failed     map[string]int // requests, by error
	Writes     map[string]int // accepted ones, by resource
	Refused    int            // stale writes
	Excused    int            // overlaps of trusted leases that a loss of data explains
	Overtaken  int            // leases with a token below one given before, that such a loss explains
	Longest    time.Duration  // wait
	Faults     []FaultFigures // by name
	Violations []Violation
}

// FaultFigures are about all faults of one name.
type FaultFigures struct {
	Name    string
	Count   int
	Excused int           // overlaps
	Worst   time.Duration // from its end to the next lease of each key
	Idle    time.Duration // in which a key that was wanted had no lease, in part while it lasted
	After   time.Duration // how much of such a time came after its end
}

// A lease is a request that was answered with one.
type lease struct {
	op, key     string
	whole       string // the request for several keys of which it is one; empty: none
	how         string
	token       int64
	mode        history.Mode
	weight      int // of permits
	limit       int // that its caller believes in
	ttl         history.Time
	asked, told history.Time
	since       history.Time // when the holding was asked for that it is part of
	valid       history.Time // it is known to have been trusted from told until here
	over, given history.Time // Unlock was called, and returned; 0 if it never was
	unlocked    bool         // without an error
	lapsed      history.Time // it was over then, as it said itself, if it is a part of a whole; 0: unknown
	excused     bool         // it overlaps another, and the store had lost one of them
	overtaken   bool         // it has a smaller token than one given before, likewise
}

// A wait is a request with its answer.
type wait struct {
	op          string
	asked, told history.Time
}

// A key is all that happened to one key.
type key struct {
	name   string
	leases []*lease // by the time of the answer
	waits  []wait
	shared bool // not all leases are of all of it
	parts  bool // some leases are of several keys
}

// A fault is one, and what it explains.
type fault struct {
	history.Record

	excused int // overlaps
}

// A checker is a history being judged.
type checker struct {
	limits Limits
	keys   []*key
	faults []*fault // by their begin
	quiet  []gap    // times without a fault, or the repair of one
	writes []history.Record
	looks  []history.Record
	jobs   map[string]*job
	owners map[string]map[string]*owner // of keys, by their names
	byOp   map[string]*lease
	origin int64 // when the clock of these times stood at 0, in ns since 1970; 0: unknown
	report Report
}

// History judges a history.
func History(records []history.Record, limits Limits) Report {
	c := &checker{limits: limits, jobs: make(map[string]*job), byOp: make(map[string]*lease), owners: make(map[string]map[string]*owner)}
	c.report.Failed = make(map[string]int)
	c.report.Writes = make(map[string]int)
	c.gather(records)
	c.findQuiet()
	for _, k := range c.keys {
		c.checkOverlaps(k)
		c.checkPermits(k)
		c.checkOrder(k)
		if k.shared {
			c.checkShareModel(k)
		} else {
			c.checkModel(k)
		}
		c.checkWaits(k)
		c.checkWholes(k)
		c.checkOvertaking(k)
	}
	c.checkTerms()
	c.checkRuns()
	c.checkResources()
	c.figures()
	return c.report
}

func (c *checker) violate(rule, key, format string, args ...any) {
	c.report.Violations = append(c.report.Violations, Violation{rule, key, fmt.Sprintf(format, args...)})
}
