// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// margin is by how much clocks of the machine may differ.
const margin history.Time = 100 * 1_000_000 // ns

// parts are those of the second half of an interval. In each of them a call has to be answered.
const parts = 4

// checkDue: an interval has a run if the store could be reached in its second half. Calls that are answered
// say so, because they are many and of many processes. It needs none if one of an earlier interval is at
// work, or if the store's clock was set back and it knows of a later one. Those who had the key one after the
// other may all have died: each of their TTLs takes a part of the half.
func (c *checker) checkDue(j *job) {
	for _, p := range c.periods(j) {
		if !p.reached(j) || c.busy(j, p) {
			continue
		}
		ttl := c.longestTTL(j.key)
		died := c.faultsIn(p.half()-ttl, p.end)
		firm := history.Time(died)*ttl < p.end-p.half()
		c.report.Due++
		if firm {
			c.report.Firm++
		}
		switch {
		case slices.ContainsFunc(j.began, func(r history.Record) bool { return r.Slot == p.slot || r.Slot > p.slot && r.End < p.end }):
		case firm:
			c.violate("runs", j.key, "no run in interval %d, although calls were answered from %v to %v, and %d faults explain less", p.slot, p.half(), p.end, died)
		default:
			c.report.Undone++
		}
	}
}

// A period is when calls count for an interval.
type period struct {
	slot       int64 // the interval's beginning by the store's clock
	begin, end history.Time
}

func (p period) half() history.Time { return p.begin + (p.end-p.begin)/2 }

// reached reports whether a call was made and answered in each part of the second half. Calls at its ends
// may count for another interval.
func (p period) reached(j *job) bool {
	var answered [parts]bool
	from, part := p.half()+margin, (p.end-p.half()-2*margin)/parts
	for _, r := range j.rounds {
		if r.Error == "" && r.Begin >= from && r.End < from+parts*part && (r.Begin-from)/part == (r.End-from)/part {
			answered[(r.Begin-from)/part] = true
		}
	}
	return !slices.Contains(answered[:], false)
}

// busy reports whether the run of an earlier interval has the key in the second half.
func (c *checker) busy(j *job, p period) bool {
	return slices.ContainsFunc(j.began, func(r history.Record) bool {
		l := c.byOp[r.Op]
		return l != nil && r.Slot < p.slot && r.End < p.end && l.valid > p.half()
	})
}

// longestTTL is that of the leases of a key.
func (c *checker) longestTTL(key string) (ttl history.Time) {
	for _, l := range c.byOp {
		if l.key == key {
			ttl = max(ttl, l.ttl)
		}
	}
	return ttl
}

// faultsIn is how many faults there were in a time.
func (c *checker) faultsIn(from, to history.Time) (n int) {
	for _, f := range c.faults {
		if f.Begin <= to && f.End >= from {
			n++
		}
	}
	return n
}

// periods are those of a job from its first answer to its last, except those in which the store's clock
// was set.
func (c *checker) periods(j *job) (all []period) {
	if c.origin == 0 || len(j.rounds) == 0 {
		return nil
	}
	from, until := j.rounds[0].End, j.rounds[0].End
	for _, r := range j.rounds {
		from, until = min(from, r.End), max(until, r.End)
	}
	for from < until {
		p := c.periodAt(j, from)
		if !c.turned(p.begin-margin, p.end+margin) {
			all = append(all, p)
		}
		from = max(from+1, p.end)
	}
	return all
}

// periodAt returns the one that a moment is in.
func (c *checker) periodAt(j *job, t history.Time) period {
	zero, every := c.zero(t), int64(j.every)
	early := every / 10 // as package once has it
	slot := (zero + int64(t) + early) / every * every
	begin := history.Time(slot - early - zero)
	return period{slot, begin, begin + j.every}
}

// slots returns the beginnings of the intervals for which calls in a time count, at its beginning and
// its end. They are unknown if the store's clock was set meanwhile.
func (c *checker) slots(j *job, from, to history.Time) (first, last int64, known bool) {
	if c.origin == 0 || c.turned(from, to) {
		return 0, 0, false
	}
	return c.periodAt(j, from).slot, c.periodAt(j, to).slot, true
}

// turned reports whether the store's clock was set in a time.
func (c *checker) turned(from, to history.Time) bool {
	return slices.ContainsFunc(c.faults, func(f *fault) bool { return f.Shift != 0 && f.Begin <= to && f.End >= from })
}

// zero is what the store's clock would have said when these times began, had it been set before.
func (c *checker) zero(t history.Time) int64 {
	zero := c.origin
	for _, f := range c.faults {
		if f.Shift != 0 && f.End < t {
			zero += int64(f.Shift)
		}
	}
	return zero
}
