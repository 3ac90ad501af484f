// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"maps"
	"slices"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// A job is all that happened to one that runs once in each interval.
type job struct {
	key    string
	every  history.Time
	began  []history.Record // runs, by the time at which their functions were called
	rounds []history.Record // calls that were answered
	ended  map[string]history.Time
}

// checkRuns judges each job by itself.
func (c *checker) checkRuns() {
	for _, name := range slices.Sorted(maps.Keys(c.jobs)) {
		j := c.jobs[name]
		slices.SortFunc(j.began, func(a, b history.Record) int { return cmp.Compare(a.End, b.End) })
		j.findEnds()
		c.report.Runs += len(j.began)
		c.checkRepeats(j)
		c.checkRecords(j)
		c.checkSlots(j)
		c.checkDue(j)
		c.checkPace(j)
	}
}

// findEnds finds out which runs have ended, as others or they themselves were told, and when at the latest.
func (j *job) findEnds() {
	j.ended = make(map[string]history.Time)
	ops := make(map[identity]string)
	for _, r := range j.began {
		ops[identityOf(r)] = r.Op
	}
	for _, r := range j.rounds {
		op, found := ops[identityOf(r)]
		if at := j.ended[op]; r.Over && found && (at == 0 || r.End < at) {
			j.ended[op] = r.End
		}
	}
}

// An identity names a run.
type identity struct {
	slot, token int64
	attempt     int
}

func identityOf(r history.Record) identity { return identity{r.Slot, r.Token, r.Attempt} }

// checkRepeats: in one interval there are no two runs that have ended, none begins after one has
// ended, and no attempt is made twice, except where the store has lost the record of a run.
func (c *checker) checkRepeats(j *job) {
	type attempt struct {
		slot   int64
		number int
	}
	made := make(map[attempt]history.Record)
	over := make(map[int64]history.Record) // runs that have ended, by the interval
	for _, r := range j.began {
		if before, found := over[r.Slot]; found {
			ended := j.ended[before.Op]
			switch {
			case c.forgotten(j.key, before.Begin, r.End):
				c.report.Repeats++
			case j.ended[r.Op] != 0:
				c.violate("runs", j.key, "%s and %s have both run and ended in interval %d", before.Op, r.Op, r.Slot)
			case r.Token > before.Token: // otherwise it is a run before, whose beginning was told late
				c.violate("runs", j.key, "%s began at %v in interval %d, in which %s had ended at %v", r.Op, r.End, r.Slot, before.Op, ended)
			}
		}
		a := attempt{r.Slot, r.Attempt}
		if before, found := made[a]; found && !c.forgotten(j.key, before.Begin, r.End) {
			c.violate("runs", j.key, "%s and %s are both attempt %d in interval %d", before.Op, r.Op, r.Attempt, r.Slot)
		}
		made[a] = r
		if j.ended[r.Op] != 0 {
			over[r.Slot] = r
		}
	}
}

// forgotten reports whether the store may have lost a record in a time.
func (c *checker) forgotten(key string, from, to history.Time) bool {
	return slices.ContainsFunc(c.faults, func(f *fault) bool {
		lost := f.Forgets || f.Lossy && f.Step == 0
		return lost && (f.Key == "" || f.Key == key) && f.Begin <= to && f.End >= from
	})
}

// checkRecords: a run that a call knows of has begun. No loss of data makes one up.
func (c *checker) checkRecords(j *job) {
	began := make(map[identity]history.Time)
	for _, r := range j.began {
		began[identityOf(r)] = r.End
	}
	for _, r := range j.rounds {
		if !r.Over {
			continue // its process may have died before it told of the beginning
		}
		if at, found := began[identityOf(r)]; !found || at > r.End {
			c.violate("runs", j.key, "%s was told at %v of attempt %d in interval %d with token %d, which nobody had begun", r.Op, r.End, r.Attempt, r.Slot, r.Token)
		}
	}
}

// checkSlots: a run is of the interval that the store's clock was in. A call that is answered, and found
// nobody at work, knows of a run in its interval. With the rule before, that means: an interval in which
// somebody could reach the store has a run. A store whose clock was set back may know of a later one.
func (c *checker) checkSlots(j *job) {
	slots, reached := make(map[int64]bool), make(map[int64]bool)
	for _, r := range j.began {
		slots[r.Slot] = true
		if first, last, known := c.slots(j, r.Begin-margin, r.End+margin); known && (r.Slot < first || r.Slot > last) {
			c.violate("runs", j.key, "%s began at %v in interval %d, when it was %d to %d", r.Op, r.End, r.Slot, first, last)
		}
	}
	for _, r := range j.rounds {
		if r.Error != "" || r.Running || r.Ran {
			continue
		}
		slot, last, known := c.slots(j, r.Begin-margin, r.End+margin)
		if !known || slot != last {
			continue
		}
		reached[slot] = true
		if r.Slot < slot {
			c.violate("runs", j.key, "%s found nothing to do at %v, in interval %d, and knew of a run in %d only", r.Op, r.End, slot, r.Slot)
		}
	}
	c.report.Slots += len(slots)
	c.report.Reached += len(reached)
}

// checkPace: no job is without a run for longer than an interval and a repair, and for each fault as
// much more as any wait.
func (c *checker) checkPace(j *job) {
	if len(j.rounds) == 0 {
		return
	}
	byEnd := func(a, b history.Record) int { return cmp.Compare(a.End, b.End) }
	from, until := slices.MinFunc(j.rounds, byEnd).End, slices.MaxFunc(j.rounds, byEnd).End
	judge := func(to history.Time) {
		allowed := j.every + history.Span(c.limits.Repair)
		if to-from <= allowed {
			return
		}
		if allowed += c.allowance(from, to); to-from > allowed {
			c.violate("runs", j.key, "no run began for %v from %v on; at most %v is allowed", to-from, from, allowed)
		}
	}
	for _, r := range j.began {
		judge(min(r.End, until))
		from = max(from, r.End)
	}
	judge(until)
}
