// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

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

// judge says whether the target was reached: by the median, or by the median of the ratios within the rounds.
func (t target) judge(r result) string {
	more := r.Metrics[t.metric].HigherIsBetter
	us, _ := r.of(asynclockPeer.name)
	value, said := t.valueOf(us, more), ""
	if t.of != "" {
		other, _ := r.of(t.of)
		value = us.ratio(other, t.metric)
		said = figure(value) + " ×: "
	}
	switch {
	case math.IsNaN(value):
		return "not measured"
	case value == t.limit, (value > t.limit) == more:
		return said + "reached"
	}
	return said + "**not reached**"
}

// valueOf returns the median of the rounds, or the worst of them.
func (t target) valueOf(o outcome, more bool) float64 {
	column := o.column(t.metric)
	switch {
	case !t.always || len(column) == 0:
		return o.summary(t.metric).Median
	case more:
		return slices.Min(column)
	}
	return slices.Max(column)
}

// A role is the column of the table in which a peer stands.
type role int

const (
	roleOurs role = iota
	rolePeer
	roleFloor
)

// floors are compared to, and are no peers.
var floors = []string{floorPeer.name, lowestFloorPeer.name, mutexName, rwMutexName, localName, oneServerName}

func roleOf(name string) role {
	switch {
	case slices.Contains(floors, name):
		return roleFloor
	case name == asynclockPeer.name, name == renewedAlone:
		return roleOurs
	}
	return rolePeer
}

const familyIntroduction = `
Each contestant takes its turn in each of %d rounds, after one that does not count. A value is the median of the rounds.
A ratio is the median of the ratios within a round. "mutex" is asynclock's own Lock, and "floor" is SET NX PX with a
compare-and-delete. The run took %v.

The peers in Java time their own operations in a JVM that has done some thousands of them before. All contestants
in Redis have the same servers, and so do those in ZooKeeper. ZooKeeper and etcd keep their data in memory, since
Redis writes nothing to disk either.
`

// inShort has a row for each workload, about its first metric.
func (r *report) inShort() table.Writer {
	t := newTable()
	t.AppendHeader(table.Row{"workload", "asynclock", "peers", "floor", "target", "reached"})
	for _, res := range r.Results {
		var wanted, said []string
		for _, goal := range res.load.targets {
			wanted, said = append(wanted, goal.String(res.Metrics)), append(said, goal.judge(res))
		}
		peers := res.cell(rolePeer)
		if res.load.absent != "" {
			peers = append(peers, res.load.absent)
		}
		t.AppendRow(table.Row{
			res.Workload, lines(res.cell(roleOurs)), lines(peers), lines(res.cell(roleFloor)), lines(wanted), lines(said),
		})
	}
	return t
}

// lines are the lines of a cell.
func lines(all []string) string { return strings.Join(all, "<br/>") }

// cell says what the peers of a role have reached in the first metric.
func (r result) cell(who role) (said []string) {
	m := r.Metrics[0]
	us, measured := r.of(asynclockPeer.name)
	for _, o := range r.Peers {
		if roleOf(o.Peer) != who {
			continue
		}
		value := spaced(amount(o.summary(0).Median), m.Unit)
		switch {
		case len(o.Rounds) == 0:
			value = o.Peer + ": " + o.Left
		case o.Peer == asynclockPeer.name:
			value = m.Name + " " + value
		case measured && who == rolePeer:
			value = fmt.Sprintf("%s: %s (%s ×)", o.Peer, value, figure(o.ratio(us, 0)))
		default:
			value = o.Peer + ": " + value
		}
		said = append(said, value)
	}
	return said
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

func spaced(value, unit string) string { return strings.TrimSpace(value + " " + unit) }
