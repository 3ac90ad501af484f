// SPDX-License-Identifier: Apache-2.0

package once

import "time"

// A skipped is what a record says of intervals other than that of the last run. It matters only if the store's
// clock was ahead for a while, or is set back: then intervals come that begin before a run that is recorded.
//
// It is one stretch of time, and the latest run. All other intervals before the latest run count as done. So
// whatever the clock does, no interval gets a second run. At worst, one gets none.
type skipped struct {
	after  time.Time // nothing ran in an interval that begins after this
	before time.Time // and ends by this; zero: no such stretch is known
	latest time.Time // the beginning of the latest interval with a run; zero: that of the last run
}

// lastStart returns the beginning of the latest interval with a run.
func (f *found) lastStart() time.Time {
	if f.skipped.latest.After(f.start) {
		return f.skipped.latest
	}
	return f.start
}

// isFree reports whether nothing is recorded that ran in the interval.
func (f *found) isFree(start time.Time, every time.Duration) bool {
	s := f.skipped
	return f.lastStart().Before(start) ||
		!s.after.IsZero() && s.after.Before(start) && !start.Add(every).After(s.before)
}

// with returns what is to be recorded with a run in the interval.
func (f *found) with(start time.Time, every time.Duration) skipped {
	s, last := f.skipped, f.lastStart()
	switch {
	case last.IsZero(), // the first run, or a record was forgotten: nothing is known of what ran before
		start.Equal(f.start): // another attempt
		return s
	case start.Before(last): // in the stretch, behind a clock that was ahead
		return skipped{after: start, before: s.before, latest: last}
	case last.Add(every).Before(start):
		return skipped{after: last, before: start}
	}
	return skipped{after: s.after, before: s.before}
}
