// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"math"
	"slices"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// checkWaits: everyone is served, or told why not, in time.
//
// Two bounds. A request is answered when everyone else may have had a turn, plus
// for each fault in the meantime as long as that lasted and its repair. And a key
// that somebody waits for is idle no longer than a repair, plus the same for each
// fault: this one is short, and is what a waiter that is forgotten offends.
//
// Where faults follow each other closely, their allowances have no end. So a key is also judged in each time that is
// quiet: there it is idle for no longer than a repair.
func (c *checker) checkWaits(k *key) {
	for _, w := range k.waits {
		took := w.told - w.asked
		c.report.Longest = max(c.report.Longest, took.Duration())
		if took <= history.Span(c.limits.Turns) {
			continue
		}
		if allowed := history.Span(c.limits.Turns) + c.allowance(w.asked, w.told); took > allowed {
			c.violate("waiting", k.name, "%s was answered after %v, which should have taken %v at most", w.op, took, allowed)
		}
	}
	if k.parts {
		return
	}
	for _, gap := range k.idle(history.Span(c.limits.Repair)) {
		repair := history.Span(c.limits.Repair)
		if c.checkIdle(k, gap, repair+c.allowance(gap.from, gap.to)) {
			continue
		}
		for _, quiet := range c.quiet {
			if c.checkIdle(k, gap.within(quiet), repair) {
				break
			}
		}
	}
}

// checkIdle reports whether somebody waited for longer in a time in which nobody had the key.
func (c *checker) checkIdle(k *key, idle gap, allowed history.Time) bool {
	if idle.to-idle.from <= allowed {
		return false
	}
	for _, w := range k.waits {
		if took := min(w.told, idle.to) - max(w.asked, idle.from); took > allowed {
			c.violate("idle", k.name, "nobody had it for %v from %v on, while %s waited; at most %v is allowed", took, idle.from, w.op, allowed)
			return true
		}
	}
	return false
}

// findQuiet finds the times from a repair after all earlier faults until the next one begins.
func (c *checker) findQuiet() {
	var from history.Time
	for _, f := range c.faults { // by their begin
		if from < f.Begin {
			c.quiet = append(c.quiet, gap{from, f.Begin})
		}
		from = max(from, f.End+history.Span(c.limits.Repair))
	}
	c.quiet = append(c.quiet, gap{from, math.MaxInt64})
}

// allowance is how much longer anything may take because of the faults in a time.
// One that was over before may have left a dead holder behind, or a connection
// that nobody knows is dead.
func (c *checker) allowance(from, to history.Time) (sum history.Time) {
	repair := history.Span(c.limits.Repair)
	for _, f := range c.faults {
		if f.Begin <= to && f.End+repair >= from {
			sum += f.End - f.Begin + repair
		}
	}
	return sum
}

type gap struct{ from, to history.Time }

// within returns the part of a time that lies in another. It has no length if there is none.
func (g gap) within(other gap) gap { return gap{max(g.from, other.from), min(g.to, other.to)} }

// idle lists the times, longer than shortest, in which nobody had the key.
func (k *key) idle(shortest history.Time) (gaps []gap) {
	if len(k.waits) == 0 {
		return nil
	}
	last := slices.MaxFunc(k.waits, func(a, b wait) int { return cmp.Compare(a.told, b.told) }).told
	from := slices.MinFunc(k.waits, func(a, b wait) int { return cmp.Compare(a.asked, b.asked) }).asked
	for _, l := range k.leases {
		if l.told-from > shortest {
			gaps = append(gaps, gap{from, l.told})
		}
		from = max(from, l.valid, l.over)
	}
	if last-from > shortest {
		gaps = append(gaps, gap{from, last})
	}
	return gaps
}
