// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// figures sums up the faults. Other faults may be under way when one is over;
// what recovery takes is what it took with them.
func (c *checker) figures() {
	byName := make(map[string]*FaultFigures)
	idle := c.idle()
	for _, f := range c.faults {
		if byName[f.Fault] == nil {
			byName[f.Fault] = &FaultFigures{Name: f.Fault}
		}
		sum := byName[f.Fault]
		sum.Count++
		sum.Excused += f.excused
		for _, k := range c.keys {
			if next, found := k.nextAfter(f.End); found {
				sum.Worst = max(sum.Worst, (next - f.End).Duration())
			}
		}
		for _, g := range idle {
			if g.from < f.End && g.to > f.Begin {
				sum.Idle = max(sum.Idle, (g.to - g.from).Duration())
				sum.After = max(sum.After, (g.to - f.End).Duration())
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		c.report.Faults = append(c.report.Faults, *byName[name])
	}
}

// idle lists the times in which somebody wanted a key and nobody had it. A caller that is refused may ask again soon, and
// is counted in between. Keys of which some leases are parts are left out.
func (c *checker) idle() (all []gap) {
	soon := history.Span(10 * time.Millisecond)
	for _, k := range c.keys {
		if k.parts {
			continue
		}
		var wanted []gap
		for _, w := range slices.SortedFunc(slices.Values(k.waits), func(a, b wait) int { return cmp.Compare(a.asked, b.asked) }) {
			if n := len(wanted); n > 0 && w.asked <= wanted[n-1].to+soon {
				wanted[n-1].to = max(wanted[n-1].to, w.told)
			} else {
				wanted = append(wanted, gap{w.asked, w.told})
			}
		}
		for _, g := range k.idle(soon) {
			first, _ := slices.BinarySearchFunc(wanted, g.from, func(w gap, t history.Time) int { return cmp.Compare(w.to, t) })
			for _, w := range wanted[first:] {
				if w = w.within(g); w.from >= w.to {
					break
				}
				all = append(all, w)
			}
		}
	}
	return all
}

// nextAfter is when the first lease after a moment was given.
func (k *key) nextAfter(t history.Time) (history.Time, bool) {
	i, _ := slices.BinarySearchFunc(k.leases, t, func(l *lease, t history.Time) int { return cmp.Compare(l.told, t) })
	if i == len(k.leases) {
		return 0, false
	}
	return k.leases[i].told, true
}

// Strikes is how many faults there were.
func (r *Report) Strikes() (n int) {
	for _, f := range r.Faults {
		n += f.Count
	}
	return n
}
