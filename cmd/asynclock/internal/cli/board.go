// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// rateWindow is the time over which grants are counted.
const rateWindow = 10 * time.Second

// A board has the keys of one sample after another, and what can be seen of them over time.
type board struct {
	last  sample
	rows  map[string]*boardRow
	began time.Time
	whole bool // a sample had all keys
}

// A boardRow is a key. One that was granted lately stays for rateWindow when it is free.
type boardRow struct {
	asynclock.Info

	since  time.Time   // the holder has had it since then, as far as it was seen; zero: nobody has it
	early  bool        // it had it before the first sample
	grants []time.Time // those seen in the last rateWindow
}

// update takes a sample, which is whole if all was listed. A key that is seen
// first before a whole one may have been there before.
func (b *board) update(now time.Time, s sample, whole bool) {
	if b.last == nil {
		b.began, b.rows = now, make(map[string]*boardRow, len(s))
	}
	for _, c := range compare(b.last, s) {
		row := b.rows[c.after.Key]
		if row == nil {
			row = new(boardRow)
			b.rows[c.after.Key] = row
			if !b.whole {
				c.kind = keyFound
			}
		}
		switch c.kind {
		case keyFound:
			row.since, row.early = now, true
		case keyTaken, keyPassed:
			row.since, row.early, row.grants = now, false, append(row.grants, now)
		default:
		}
	}
	for key, row := range b.rows {
		row.grants = slices.DeleteFunc(row.grants, func(at time.Time) bool { return now.Sub(at) >= rateWindow })
		if _, isThere := s[key]; !isThere && len(row.grants) == 0 {
			delete(b.rows, key)
			continue
		}
		if row.Info = s.of(key); !row.Held {
			row.since = time.Time{}
		}
	}
	b.last, b.whole = s, b.whole || whole
}

// held returns for how long the holder has the key, as far as it was seen.
func (r *boardRow) held(now time.Time) time.Duration {
	if r.since.IsZero() {
		return 0
	}
	return now.Sub(r.since)
}

// rate returns how many grants of a key are seen in a second.
func (b *board) rate(r *boardRow, now time.Time) float64 {
	seen := min(now.Sub(b.began), rateWindow)
	if seen <= 0 {
		return 0
	}
	return float64(len(r.grants)) / seen.Seconds()
}
