// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// answered is a call in each part of the second half of an interval, which finds another at work. Those of
// the first interval are judged from 900 to 1700.
func (h tale) answered(number history.Time) tale {
	for i, at := range []history.Time{950, 1150, 1350, 1550} {
		at += 2000 * number
		h = h.saw(string(rune('a'+i)), at, at+100, true, "")
	}
	return h
}

// leased is the lease of a job's run, of 400 ms.
func (h tale) leased(op string, token int64, asked, told, valid history.Time) tale {
	h = h.held(op, token, asked, told, valid)
	h[len(h)-2].Key, h[len(h)-2].How, h[len(h)-2].TTL = "j", "once.Do", 400*ms
	return h
}

// withRun has a run in the first interval, so that the TTL is known, and answers in the second.
func (h tale) withRun() tale {
	return h.clocked().began("1", 0, 1, 4, 1500, 1501).leased("1", 4, 1500, 1501, 1600).ran("1", 0, 1, 4, 1500, 1601).answered(1)
}

func TestIntervalsThatNeedNoRun(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]struct {
		tale        tale
		due, undone int
	}{
		"one that has a run":                        {tale{}.clocked().answered(0).began("1", 0, 1, 5, 940, 945), 1, 0},
		"one whose run begins late":                 {tale{}.clocked().answered(0).began("1", 0, 1, 5, 1690, 1820), 1, 0},
		"no answer in the first part":               {append(tale{}.clocked(), tale{}.answered(0)[1:]...), 0, 0},
		"no answer in the last part":                {tale{}.clocked().answered(0)[:4], 0, 0},
		"an answer from part to part":               {append(tale{}.clocked().answered(0)[:4], tale{}.saw("x", 1490, 1510, true, "")...), 0, 0},
		"an answer with a failure":                  {tale{}.clocked().answered(0)[:4].saw("x", 1550, 1560, false, "unreachable"), 0, 0},
		"an answer at the end":                      {tale{}.clocked().answered(0)[:4].saw("x", 1700, 1710, true, ""), 0, 0},
		"an unknown clock":                          {tale{}.answered(0), 0, 0},
		"a clock that is set":                       {tale{}.clocked().shifted(1200, -100).answered(0), 0, 0},
		"holders that died":                         {tale{}.withRun().fault("worker killed", 2390, 2410, false).fault("connections refused", 2900, 2910, false).fault("worker paused", 3790, 3900, false), 1, 1},
		"a run of the interval before":              {tale{}.clocked().began("1", 0, 1, 4, 1500, 1501).leased("1", 4, 1500, 1501, 2850).answered(1), 0, 0},
		"a later run, by a clock that was set back": {tale{}.clocked().began("1", 2, 1, 4, 3810, 3811).ran("1", 2, 1, 4, 3810, 3812).shifted(3850, -4000).fault("server paused", 3900, 5700, false).answered(3), 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if r := good.tale.wantRules(t); r.Due != good.due || r.Undone != good.undone || r.Firm != good.due-good.undone {
				t.Errorf("got %d intervals, %d that need a run, %d without, want %d, %d without", r.Due, r.Firm, r.Undone, good.due, good.undone)
			}
		})
	}
}

func TestIntervalsThatNeedARun(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]tale{
		"nobody runs":                      tale{}.clocked().answered(0),
		"nobody has ever had the key":      tale{}.clocked().answered(0).fault("worker killed", 950, 960, false),
		"too few died":                     tale{}.withRun().fault("worker killed", 2390, 2410, false).fault("worker paused", 3790, 3900, false),
		"others died before and after":     tale{}.withRun().fault("worker killed", 2380, 2399, false).fault("connections refused", 2900, 2910, false).fault("worker paused", 3801, 3900, false),
		"a run of the interval before":     tale{}.withRun(),
		"a run of the next interval":       tale{}.withRun().began("2", 2, 1, 5, 3850, 3860),
		"a run of the interval after that": tale{}.clocked().answered(0).began("1", 1, 1, 5, 1850, 1860),
	} {
		t.Run(name, func(t *testing.T) {
			if r := bad.wantRules(t, "runs"); r.Due != 1 || r.Undone != 0 || len(r.Violations) != 1 {
				t.Errorf("got %d intervals, %d without a run, %d violations, want 1, 0 and 1", r.Due, r.Undone, len(r.Violations))
			}
		})
	}
}
