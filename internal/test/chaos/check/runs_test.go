// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// Intervals of these histories are of 2000 ms. The store's clock stands at 1,000,000 ms when theirs
// stands at 0: an interval begins then, and calls from 1800 on count for the next one.
const (
	long   = 2000 * ms
	origin = int64(1_000_000 * ms)
)

// slot is the beginning of an interval by its number, from 0.
func slot(number int64) int64 { return origin + number*int64(long) }

func (h tale) clocked() tale {
	return append(h, history.Record{Kind: history.Run, Site: "standalone", End: 1, Origin: origin})
}

// began is a run whose call was made at asked, and whose function was called at told.
func (h tale) began(op string, number int64, attempt int, token int64, asked, told history.Time) tale {
	return append(h, history.Record{
		Kind: history.Began, Op: op, Key: "j", Begin: asked * ms, End: told * ms, Token: token, Slot: slot(number), Every: long, Attempt: attempt,
	})
}

// ran is the answer to the call of a run that has ended.
func (h tale) ran(op string, number int64, attempt int, token int64, asked, told history.Time) tale {
	h = h.knew(op, number, attempt, token, asked, told)
	h[len(h)-1].Ran = true
	return h
}

// knew is the answer to a call that had nothing to do, and knew of a run that had ended.
func (h tale) knew(op string, number int64, attempt int, token int64, asked, told history.Time) tale {
	return append(h, history.Record{
		Kind: history.Round, Op: op, Key: "j", How: "once.Do", Begin: asked * ms, End: told * ms, Token: token, Slot: slot(number),
		Every: long, Attempt: attempt, Over: true,
	})
}

// saw is the answer to a call that had nothing to do, and knew of no end.
func (h tale) saw(op string, asked, told history.Time, running bool, failure string) tale {
	return append(h, history.Record{
		Kind: history.Round, Op: op, Key: "j", How: "once.Do", Begin: asked * ms, End: told * ms, Every: long, Running: running, Error: failure,
	})
}

// shifted is the store's clock, set forward or back.
func (h tale) shifted(at, by history.Time) tale {
	h = h.fault("clock set", at, at+1, false)
	h[len(h)-1].Shift = by * ms
	return h
}

// emptied is a fault after which the store knows of no run.
func (h tale) emptied(begin, end history.Time) tale {
	h = h.fault("server killed, back empty", begin, end, false)
	h[len(h)-1].Forgets = true
	return h
}

func TestGoodRuns(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]tale{
		"one in each interval": tale{}.clocked().began("1", 0, 1, 5, 300, 310).ran("1", 0, 1, 5, 300, 320).knew("2", 0, 1, 5, 900, 910).
			began("3", 1, 1, 6, 2200, 2210).ran("3", 1, 1, 6, 2200, 2220),
		"one that died":                     tale{}.clocked().began("1", 0, 1, 5, 300, 310).began("2", 0, 2, 6, 900, 910).ran("2", 0, 2, 6, 900, 920),
		"one that lost its lease and ended": tale{}.clocked().began("1", 0, 1, 5, 300, 310).began("2", 0, 2, 6, 900, 910).ran("2", 0, 2, 6, 900, 920).saw("1", 300, 990, false, "lost"),
		"an early call":                     tale{}.clocked().began("1", 1, 1, 5, 1750, 1760).ran("1", 1, 1, 5, 1750, 1770),
		"two runs, because of a loss":       tale{}.clocked().began("1", 0, 1, 5, 300, 310).ran("1", 0, 1, 5, 300, 320).fault("FLUSHALL", 400, 410, true).began("2", 0, 1, 6, 500, 510).ran("2", 0, 1, 6, 500, 520),
		"two runs, because of an empty store": tale{}.clocked().began("1", 0, 1, 5, 300, 310).ran("1", 0, 1, 5, 300, 320).emptied(400, 410).
			began("2", 0, 1, 6, 500, 510).ran("2", 0, 1, 6, 500, 520),
		"a beginning that is told late": tale{}.clocked().began("1", 0, 1, 5, 300, 710).began("2", 0, 2, 6, 400, 410).ran("2", 0, 2, 6, 400, 420),
		"nobody can reach the store":    tale{}.clocked().saw("1", 300, 310, false, "unreachable").saw("2", 900, 910, false, "unreachable"),
		"another is at work":            tale{}.clocked().saw("1", 300, 310, true, ""),
		"a call between two intervals":  tale{}.clocked().saw("1", 1750, 1760, false, ""),
		"a clock that was set back": tale{}.clocked().began("1", 1, 1, 5, 2110, 2120).ran("1", 1, 1, 5, 2110, 2130).shifted(2200, -900).
			knew("2", 1, 1, 5, 2310, 2320),
		"a clock that is set forward meanwhile": tale{}.clocked().began("1", 1, 1, 5, 1000, 1020).shifted(1010, 1000),
		"a clock that was set forward":          tale{}.clocked().shifted(100, 1000).began("1", 1, 1, 5, 1000, 1020),
		"an unknown clock":                      tale{}.began("1", 7, 1, 5, 300, 310),
		"a pace that a fault explains": tale{}.clocked().began("1", 0, 1, 5, 300, 310).ran("1", 0, 1, 5, 300, 320).fault("server paused", 500, 2600, false).
			began("2", 2, 1, 6, 4400, 4410).ran("2", 2, 1, 6, 4400, 4420),
	} {
		t.Run(name, func(t *testing.T) { good.wantRules(t) })
	}
}

func TestBadRuns(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]tale{
		"two that have ended": tale{}.clocked().began("1", 0, 1, 5, 300, 310).ran("1", 0, 1, 5, 300, 600).
			began("2", 0, 2, 6, 500, 510).ran("2", 0, 2, 6, 500, 590),
		"two that have ended, and the later one told so first": tale{}.clocked().began("1", 0, 1, 5, 300, 710).ran("1", 0, 1, 5, 300, 720).
			began("2", 0, 2, 6, 400, 410).ran("2", 0, 2, 6, 400, 420),
		"two that have ended, with a loss before": tale{}.clocked().fault("FLUSHALL", 1, 2, true).began("1", 0, 1, 5, 300, 310).ran("1", 0, 1, 5, 300, 600).
			began("2", 0, 2, 6, 500, 510).ran("2", 0, 2, 6, 500, 590),
		"two that have ended, with a loss after": tale{}.clocked().began("1", 0, 1, 5, 300, 310).ran("1", 0, 1, 5, 300, 600).
			began("2", 0, 2, 6, 500, 510).ran("2", 0, 2, 6, 500, 590).emptied(600, 610),
		"two that have ended, with a step of the clock": tale{}.clocked().began("1", 0, 1, 5, 300, 310).ran("1", 0, 1, 5, 300, 600).
			forward(505, 10).began("2", 0, 2, 6, 506, 510).ran("2", 0, 2, 6, 506, 590),
		"one that begins after the end":                tale{}.clocked().began("1", 0, 1, 5, 300, 310).ran("1", 0, 1, 5, 300, 320).began("2", 0, 2, 6, 500, 510),
		"one that was called before the end":           tale{}.clocked().began("1", 0, 1, 5, 300, 310).ran("1", 0, 1, 5, 300, 320).began("2", 0, 2, 6, 1, 550),
		"one that begins after others knew of the end": tale{}.clocked().began("1", 0, 1, 5, 300, 310).knew("2", 0, 1, 5, 400, 410).began("3", 0, 2, 6, 500, 510),
		"two that have ended, as others knew":          tale{}.clocked().began("1", 0, 1, 5, 300, 310).began("2", 0, 2, 6, 350, 360).knew("3", 0, 2, 6, 380, 390).knew("4", 0, 1, 5, 400, 410),
		"one attempt, twice":                           tale{}.clocked().began("1", 0, 1, 5, 300, 310).began("2", 0, 1, 6, 500, 510),
		"an end of which nobody knows a begin":         tale{}.clocked().knew("2", 0, 1, 5, 300, 310),
		"an end before the begin":                      tale{}.clocked().knew("2", 0, 1, 5, 300, 310).began("1", 0, 1, 5, 250, 320),
		"an end with another token":                    tale{}.clocked().began("1", 0, 1, 5, 300, 310).knew("2", 0, 1, 6, 320, 330),
		"nothing to do, and no run":                    tale{}.clocked().saw("1", 300, 310, false, ""),
		"nothing to do since the interval last":        tale{}.clocked().began("1", 0, 1, 5, 300, 310).ran("1", 0, 1, 5, 300, 320).knew("2", 0, 1, 5, 2100, 2110),
		"a run of the last interval":                   tale{}.clocked().began("1", 0, 1, 5, 2100, 2110),
		"a run of the next interval":                   tale{}.clocked().began("1", 1, 1, 5, 1600, 1610),
		"the same after a step of the clock":           tale{}.clocked().shifted(100, 1000).began("1", 0, 1, 5, 1000, 1020),
		"a job that stands still":                      tale{}.clocked().saw("1", 300, 310, true, "").saw("2", 2500, 2510, true, ""),
		"one that stands still in the middle": tale{}.clocked().began("1", 0, 1, 5, 300, 310).ran("1", 0, 1, 5, 300, 320).
			began("2", 1, 1, 6, 2450, 2460).ran("2", 1, 1, 6, 2450, 2470),
	} {
		t.Run(name, func(t *testing.T) { bad.wantRules(t, "runs") })
	}
}

// TestIntervalsAreCounted: those with a run, and those in which that was found.
func TestIntervalsAreCounted(t *testing.T) {
	t.Parallel()
	r := tale{}.clocked().began("1", 0, 1, 5, 300, 310).began("2", 0, 2, 6, 700, 710).ran("2", 0, 2, 6, 700, 720).knew("3", 0, 2, 6, 900, 910).
		began("4", 1, 1, 7, 2110, 2120).wantRules(t)
	if r.Repeats != 0 {
		t.Errorf("got %d repeated runs, want none", r.Repeats)
	}
	if r.Runs != 3 || r.Slots != 2 || r.Reached != 1 {
		t.Errorf("got %d runs in %d intervals, %d of them reached, want 3, 2 and 1", r.Runs, r.Slots, r.Reached)
	}
}

// TestRepeatedRunsAreCounted: those that a loss excuses.
func TestRepeatedRunsAreCounted(t *testing.T) {
	t.Parallel()
	r := tale{}.clocked().began("1", 0, 1, 5, 300, 310).ran("1", 0, 1, 5, 300, 320).emptied(400, 410).began("2", 0, 1, 6, 500, 510).wantRules(t)
	if r.Repeats != 1 {
		t.Errorf("got %d repeated runs, want 1", r.Repeats)
	}
}
