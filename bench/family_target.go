// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"
)

// bestPeer is the best of the peers, which are all but asynclock, its mutex and the floors.
const bestPeer = "best peer"

// notMeasured is the value of what has none.
var notMeasured = math.NaN()

// A target is what asynclock has to reach in one metric of a workload.
type target struct {
	metric int
	of     string  // who it is compared to: the limit is a factor; empty: the limit is a value of the metric
	limit  float64 // the most, or the least where more is better
	always bool    // in each round; else the median of the rounds
}

// String says what the target is.
func (t target) String(metrics []metric) string {
	m := metrics[t.metric]
	limit := "at most "
	if m.HigherIsBetter {
		limit = "at least "
	}
	limit += amount(t.limit)
	switch {
	case t.of != "":
		return fmt.Sprintf("%s: %s × %s", m.Name, limit, t.of)
	case t.always:
		return fmt.Sprintf("%s: %s in each round", m.Name, spaced(limit, m.Unit))
	}
	return fmt.Sprintf("%s: %s", m.Name, spaced(limit, m.Unit))
}

// A verdict says whether a target was reached.
type verdict struct {
	value   float64 // the ratio, or the value of the metric; NaN: not measured
	reached bool
}

// judge compares the median, or the median of the ratios within the rounds.
func (t target) judge(r result) (v verdict) {
	v.value = notMeasured
	us, ok := r.of(asynclockPeer.name)
	if !ok {
		return v
	}
	if t.of == "" {
		v.value = t.valueOf(us, r.Metrics[t.metric])
	} else if other, ok := r.rival(t.of); ok {
		v.value = us.ratio(other, t.metric)
	}
	if r.Metrics[t.metric].HigherIsBetter {
		v.reached = v.value >= t.limit
	} else {
		v.reached = v.value <= t.limit
	}
	return v
}

// valueOf returns the median of the rounds, or the worst of them.
func (t target) valueOf(o outcome, m metric) float64 {
	column := o.column(t.metric)
	switch {
	case !t.always || len(column) == 0:
		return o.summary(t.metric).Median
	case m.HigherIsBetter:
		return slices.Min(column)
	}
	return slices.Max(column)
}

// rival returns the contestant of that name, or the best peer.
func (r result) rival(name string) (outcome, bool) {
	if name != bestPeer {
		return r.of(name)
	}
	var best outcome
	for _, o := range r.Peers {
		if roleOf(o.Peer) != rolePeer || !o.summary(0).known() {
			continue
		}
		if best.Peer == "" || (o.summary(0).Median < best.summary(0).Median) != r.Metrics[0].HigherIsBetter {
			best = o
		}
	}
	return best, best.Peer != ""
}

// A role is the column of the table in which a contestant stands.
type role int

const (
	roleOurs role = iota
	rolePeer
	roleFloor
)

// floors are compared to, and are no peers.
var floors = []string{floorPeer.name, mutexName, rwMutexName, localName}

func roleOf(name string) role {
	switch {
	case slices.Contains(floors, name):
		return roleFloor
	case name == asynclockPeer.name, name == renewedAlone:
		return roleOurs
	}
	return rolePeer
}

// text is for the table.
func (v verdict) text(t target) string {
	switch {
	case math.IsNaN(v.value):
		return "not measured"
	case t.of != "" && v.reached:
		return figure(v.value) + " ×: reached"
	case t.of != "":
		return figure(v.value) + " ×: **not reached**"
	case v.reached:
		return "reached"
	}
	return "**not reached**"
}

// amount writes a number with its thousands apart, all digits of it.
func amount(v float64) string {
	if math.IsNaN(v) || v < 10_000 {
		return figure(v)
	}
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func spaced(value, unit string) string {
	if unit == "" {
		return value
	}
	return value + " " + unit
}
