// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
)

func TestCommittedHandoff(t *testing.T) {
	t.Parallel()
	svg := string(handoff.svg())
	if committed(t, handoffName) != svg {
		t.Errorf("%s is not what handoff.go says; draw it again: make pictures", handoffName)
	}
	if !strings.Contains(svg, "@media (prefers-color-scheme:dark)") {
		t.Error("got no colors for dark pages")
	}
	wantHarmless(t, handoffName, svg)
}

// The times in the picture are those that were measured.
func TestHandoffShowsWhatWasMeasured(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../docs/benchmarks/results.json")
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Results []struct {
			Workload string
			Outcomes []struct {
				Peer    string
				Metrics map[string]struct{ Median float64 }
			}
		}
	}
	if err := json.Unmarshal(data, &report); err != nil {
		t.Fatal(err)
	}
	measured := make(map[string]float64)
	for _, r := range report.Results {
		for _, o := range r.Outcomes {
			if r.Workload == "handoff" {
				measured[o.Peer] = math.Round(o.Metrics["p50"].Median)
			}
		}
	}
	for peer, shown := range map[string]float64{"asynclock": ourHandoff, "redislock": pollerHandoff} {
		if measured[peer] != shown {
			t.Errorf("%s: the picture has %v µs, results.json %v: change handoff.go", peer, shown, measured[peer])
		}
	}
}

// Whatever is drawn lies within the picture, and an arrow never leads back in time.
func TestHandoffIsInOrder(t *testing.T) {
	t.Parallel()
	within := func(time float64) bool { return time >= handoff.from && time <= handoff.to }
	for _, p := range handoff.panels {
		end := make(map[int]float64)
		for _, b := range p.bars {
			if from, known := end[b.lane]; known && from != b.from || !known && b.from != handoff.from || b.to <= b.from || !within(b.to) {
				t.Errorf("%s: the bar %q of lane %d does not begin where the one before ends", p.title, b.text, b.lane)
			}
			end[b.lane] = b.to
		}
		for _, a := range p.arrows {
			if a.came <= a.sent || !within(a.sent) || !within(a.came) {
				t.Errorf("%s: the arrow %q goes from %v to %v", p.title, a.text, a.sent, a.came)
			}
		}
	}
}
