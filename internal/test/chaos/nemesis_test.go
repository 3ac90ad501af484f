// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// The processes of a run are this test binary, so that what a mutant breaks is
// broken in them.
func TestMain(m *testing.M) {
	if text := os.Getenv(workerVariable); text != "" {
		if err := beWorker(text); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// shortRuns is what asks for the runs below: they are long for tests, and the
// step chaos of .ci/run nightly makes them.
const shortRuns = "CHAOS_SHORT_RUNS"

// cuts are faults of workers and of the way from one of them to the servers.
var cuts = []string{
	"worker killed", "worker paused", "worker paused beyond the TTL", "connections refused", "requests vanish", "replies vanish",
}

// TestShortRun makes runs with few faults and the habits to which these are
// dangerous. In each, one way of breaking the library shows, nearly for certain; see
// internal/test/mutants/suite.txt.
func TestShortRun(t *testing.T) {
	for _, c := range []struct {
		name   string
		faults []string
		tune   func(*settings)
	}{
		{"slow_replies", []string{"slow replies, with a rival for each key"}, func(s *settings) {
			s.habits = habits{Unrenewed: 1, ToEnd: 1}
			s.Workers, s.Callers, s.duration = 1, 8, 12*time.Second
			s.TTLs = []time.Duration{2 * time.Second}
			s.rest = 0
		}},
		{"late_messages", []string{"worker paused, its messages later still"}, func(s *settings) {
			s.habits = habits{}
			s.Workers, s.Keys = 1, s.Keys[:1] // who waits for the key is the one that is paused
			s.TTLs = []time.Duration{3 * time.Second / 2}
			s.blows = 5
			s.rest = 50 * time.Millisecond
		}},
		{"clock_set_back", []string{"clock set back"}, func(s *settings) {
			s.habits = habits{}
			s.Keys = s.Keys[:1]
			s.rest = 50 * time.Millisecond
			s.blows = 10
		}},
		{"long_pauses", []string{"worker paused beyond the TTL"}, func(s *settings) {
			s.habits = habits{Long: 20, Impatient: 3, Blind: 2}
			s.Workers, s.Callers = 6, 2 // so that who gives up leaves the store's queue, not only the client's
			s.Keys = s.Keys[:1]
			s.rest = 100 * time.Millisecond
			s.blows = 9
		}},
		{"stale_rows", []string{"worker paused beyond the TTL"}, func(s *settings) {
			s.habits = habits{Long: 1, Blind: 1, Rows: 1}
			s.Workers, s.Callers = 2, 2 // so that who is paused holds the key, as often as not
			s.Keys = s.Keys[:1]
			s.rest = 100 * time.Millisecond
			s.blows = 9
		}},
		{"readers", []string{"messages lost", "late messages"}, func(s *settings) {
			s.habits = habits{Shares: 1, Long: 200, Impatient: 20, Bounded: 20, Unrenewed: 20}
			s.Callers, s.duration = 24, 10*time.Second
			s.TTLs = []time.Duration{time.Second, 2 * time.Second}
			s.rest = 2 * time.Second // so that readers are mostly told of writers
		}},
		{"jobs", cuts, func(s *settings) {
			s.onlyJobs(8)
			s.duration = 20 * time.Second
		}},
		{"elections", cuts, func(s *settings) {
			s.habits = habits{Elections: true, Several: 2}
			s.Workers, s.Callers, s.duration = 6, 1, 15*time.Second
			s.TTLs = []time.Duration{500 * time.Millisecond}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if os.Getenv(shortRuns) != "1" {
				t.Skip("left to .ci/run nightly chaos, which sets " + shortRuns)
			}
			if _, err := exec.LookPath("redis-server"); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(t.TempDir(), "run")
			s := defaultSettings(standalone, 1, time.Minute, dir) // a busy machine needs that for a few blows
			s.TTLs, s.Callers, s.Keys = []time.Duration{time.Second}, 8, s.Keys[:8]
			var err error
			if s.faults, err = faultsNamed(c.faults); err != nil {
				t.Fatal(err)
			}
			c.tune(&s)
			if s.habits.Rows > 0 {
				needDatabase(t)
			}
			err = perform(t.Context(), s)
			if errors.Is(err, errNoClock) {
				kit.Skip(t, err.Error())
			}
			if err != nil {
				t.Fatal(err)
			}
			v, err := judge(s.historyDir())
			if err != nil {
				t.Fatal(err)
			}
			report := v.report
			summarize(t.Output(), report)
			if n := len(report.Violations); n > 0 {
				t.Errorf("violations: got %d, want none", n)
			}
			if report.Writes["sql"] == 0 && s.habits.Rows > 0 {
				t.Error("nothing was written to a row")
			}
			if s.habits.Jobs && (report.Slots < 5 || report.Due == 0) || s.habits.Elections && report.Looks < 20 || s.habits.Several > 0 && report.Parts < 10 {
				t.Errorf("intervals, those with a store, looks and parts: got %d, %d, %d and %d, want some", report.Slots, report.Due, report.Looks, report.Parts)
			}
			if report.Leases < 10 || report.Strikes() == 0 {
				t.Errorf("leases and faults: got %d and %d, want some", report.Leases, report.Strikes())
			}
		})
	}
}
