// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"maps"
	"slices"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// figures sums up the faults. Other faults may be under way when one is over;
// what recovery takes is what it took with them.
func (c *checker) figures() {
	byName := make(map[string]*FaultFigures)
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
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		c.report.Faults = append(c.report.Faults, *byName[name])
	}
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
