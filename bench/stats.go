// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"
)

// notMeasured is the value of what has none.
var notMeasured = math.NaN()

// latencies are the metrics of what is timed one by one, as summarize returns them.
var latencies = []metric{{Name: "p50", Unit: "µs"}, {Name: "p90", Unit: "µs"}, {Name: "p99", Unit: "µs"}}

func summarize(times []float64) []float64 { return quantiles(times, 0.5, 0.9, 0.99) }

// timed does something n times, and returns how long each took in µs.
func timed(n int, do func(i int)) []float64 {
	times := make([]float64, n)
	for i := range times {
		start := time.Now()
		do(i)
		times[i] = micros(time.Since(start))
	}
	return times
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// quantiles returns quantiles of values, which it sorts. Between two values it interpolates. The
// median of three is the second of them. That of gonum's stat.Quantile is smaller.
func quantiles(values []float64, qs ...float64) []float64 {
	slices.Sort(values)
	out := make([]float64, len(qs))
	for i, q := range qs {
		out[i] = notMeasured
		if last := len(values) - 1; last >= 0 {
			below, part := math.Modf(q * float64(last))
			at := int(below)
			out[i] = values[at] + part*(values[min(at+1, last)]-values[at])
		}
	}
	return out
}

// A row has the values of a round, a column for each metric. In JSON, null is what has no value.
type row []float64

// MarshalJSON implements json.Marshaler.
func (r row) MarshalJSON() ([]byte, error) {
	values := make([]*float64, len(r))
	for i, v := range r {
		values[i] = number(v)
	}
	return json.Marshal(values)
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *row) UnmarshalJSON(data []byte) error {
	var values []*float64
	if err := json.Unmarshal(data, &values); err != nil {
		return err
	}
	for _, v := range values {
		if v == nil {
			v = &notMeasured
		}
		*r = append(*r, *v)
	}
	return nil
}

func number(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
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

// An outcome is the values of a peer.
type outcome struct {
	Peer    string              `json:"peer"`
	Left    string              `json:"leftOut,omitempty"` // the reason why there are no rounds
	Count   int                 `json:"rounds"`
	Metrics map[string]*summary `json:"metrics,omitempty"` // this and the ratios follow from the rounds
	OfFloor *float64            `json:"ratioToFloor,omitempty"`
	OfBest  *float64            `json:"ratioToBestPeerOrBase,omitempty"`
	Rounds  []row               `json:"values,omitempty"`
	fault   error               // of this repository
}

// fail records that a peer could not continue, if there is an error. Its earlier rounds do not count,
// because the defect may have affected them too.
func (o *outcome) fail(round int, err error, p peer) {
	if err == nil {
		return
	}
	o.Rounds, o.Left = nil, fmt.Sprintf("failed in round %d: %v", round, err)
	if p.is.own {
		o.fault = fmt.Errorf("%s %s", o.Peer, o.Left)
	}
}

// column returns one metric of all rounds, without the rounds that have no value.
func (o outcome) column(metric int) (values []float64) {
	for _, r := range o.Rounds {
		if v := r[metric]; !math.IsNaN(v) {
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

// A result is the outcome of a workload: for each peer, the values of each round.
type result struct {
	Workload string    `json:"workload"`
	Title    string    `json:"title"`
	Metrics  []metric  `json:"metrics"`
	Base     string    `json:"comparedTo,omitempty"`
	Peers    []outcome `json:"outcomes"`
	load     workload
}

// derive completes the outcomes by what follows from their rounds.
func (r result) derive() {
	floor, _ := r.of(floorPeer.name)
	best, _, _ := r.compareTo()
	for i := range r.Peers {
		o := &r.Peers[i]
		if o.Count = len(o.Rounds); o.Count == 0 {
			continue
		}
		o.Metrics = make(map[string]*summary)
		for i, m := range r.Metrics {
			if s := o.summary(i); s.known() {
				o.Metrics[m.Name] = &s
			}
		}
		o.OfFloor, o.OfBest = number(o.ratio(floor, 0)), number(o.ratio(best, 0))
	}
}

// compareTo returns the row that others are compared to besides the floor, and its name.
func (r result) compareTo() (o outcome, name string, ok bool) {
	if r.Base != "" {
		o, ok = r.of(r.Base)
		return o, r.Base, ok
	}
	o, ok = r.of(bestPeer)
	return o, bestPeer, ok
}

// bestPeer is the best of the peers by the first metric. Asynclock, its mutex and the floors are none.
const bestPeer = "best peer"

// of returns the outcome of a peer, or of the best one.
func (r result) of(name string) (found outcome, ok bool) {
	for _, o := range r.Peers {
		switch {
		case len(o.Rounds) == 0:
		case o.Peer == name:
			return o, true
		case name == bestPeer && roleOf(o.Peer) == rolePeer && o.summary(0).known():
			if s, best := o.summary(0).Median, found.summary(0).Median; !ok || s != best && (s > best) == r.Metrics[0].HigherIsBetter {
				found, ok = o, true
			}
		}
	}
	return found, ok
}
