// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"
)

// quantiles returns quantiles of values, which it sorts. Between two values it interpolates. The
// median of three is the second of them. That of gonum's stat.Quantile is smaller.
func quantiles(values []float64, qs ...float64) []float64 {
	slices.Sort(values)
	out := make([]float64, len(qs))
	for i, q := range qs {
		out[i] = math.NaN()
		if last := len(values) - 1; last >= 0 {
			below, part := math.Modf(q * float64(last))
			at := int(below)
			out[i] = values[at] + part*(values[min(at+1, last)]-values[at])
		}
	}
	return out
}

// A summary is a metric over all rounds: the median, and the quarters of the
// rounds below and above.
type summary struct {
	Median float64 `json:"median"`
	Low    float64 `json:"lowerQuartile"`
	High   float64 `json:"upperQuartile"`
}

// known reports whether there is a value.
func (s summary) known() bool { return !math.IsNaN(s.Median) }

// column returns one metric of all rounds, without the rounds that have no value.
func (o outcome) column(metric int) (values []float64) {
	for _, row := range o.Rounds {
		if v := row[metric]; !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	return values
}

// basis says of how many rounds the median is, if some have no value: in them, what is measured may never have ended.
func (o outcome) basis(metric int) string {
	known, all := len(o.column(metric)), len(o.Rounds)
	if known == 0 || known == all {
		return ""
	}
	return fmt.Sprintf(" (%d of %d rounds)", known, all)
}

func (o outcome) summary(metric int) summary {
	q := quantiles(o.column(metric), 0.5, 0.25, 0.75)
	return summary{q[0], q[1], q[2]}
}

// ratio returns the median over rounds of o's value divided by other's value in the same round.
// This ratio does not drift with the machine. It is NaN if one of them has no value.
func (o outcome) ratio(other outcome, metric int) float64 {
	var ratios []float64
	for i := range min(len(o.Rounds), len(other.Rounds)) {
		if r := o.Rounds[i][metric] / other.Rounds[i][metric]; !math.IsNaN(r) {
			ratios = append(ratios, r)
		}
	}
	return quantiles(ratios, 0.5)[0]
}

// compareTo returns the row that others are compared to besides the floor, and its name.
func (r result) compareTo() (o outcome, name string, ok bool) {
	if r.Base != "" {
		o, ok = r.of(r.Base)
		return o, r.Base, ok
	}
	o, ok = r.bestPeer()
	return o, "best peer", ok
}

// bestPeer returns the best peer except asynclock and the floor, by the first metric.
func (r result) bestPeer() (best outcome, ok bool) {
	for _, o := range r.Peers {
		s := o.summary(0)
		if o.Peer == asynclockPeer.name || o.Peer == floorPeer.name || o.Peer == lowestFloorPeer.name || !s.known() {
			continue
		}
		if !ok || s.Median != best.summary(0).Median && (s.Median > best.summary(0).Median) == r.Metrics[0].HigherIsBetter {
			best, ok = o, true
		}
	}
	return best, ok
}

// of returns a peer's outcome.
func (r result) of(name string) (outcome, bool) {
	i := slices.IndexFunc(r.Peers, func(o outcome) bool { return o.Peer == name })
	if i < 0 || len(r.Peers[i].Rounds) == 0 {
		return outcome{}, false
	}
	return r.Peers[i], true
}
