// SPDX-License-Identifier: Apache-2.0

package board

import (
	"slices"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

const (
	// RateWindow is the time over which grants are counted.
	RateWindow = 10 * time.Second
	// exact: if the last sample is older, a holder that is new may have been there for noticeably long.
	exact = 5 * time.Second
)

// A Pace decides how long to pause between lists: a list of many keys is work for the store.
type Pace struct {
	before time.Duration // how long the list before the last one took
	known  bool          // there was one
}

// After returns how long to pause after a list that took so long: twelve times as long, and at least a second. After one that
// has failed it is twice as long, because the next one may succeed. The quicker one of the last two lists counts: if one
// alone was slow, the store was silent for a while, and what is shown is old already.
func (p *Pace) After(took time.Duration, failed error) time.Duration {
	counts := took
	if p.known {
		counts = min(took, p.before)
	}
	p.before, p.known = took, true
	if failed != nil {
		return max(time.Second, 2*counts)
	}
	return max(time.Second, 12*counts)
}

// A Board has the keys of one sample after another, and what can be seen of them over time.
type Board struct {
	Last  Sample          // nil before the first
	Rows  map[string]*Row // by key
	began time.Time
	seen  time.Time   // the time of the last whole sample
	whole bool        // a sample had all keys
	rates bool        // the last two were so close that grants could be counted
	looks []time.Time // the samples of the last RateWindow, since began

	held, waiting int // sums of the last sample
}

// A Row is a key. One that was granted lately stays for RateWindow when it is free.
type Row struct {
	asynclock.Info

	since  time.Time   // the holder has had it since then, as far as it was seen; zero: nobody has it
	early  bool        // it may have had it for long before
	grants []time.Time // those seen in the last RateWindow
}

// Update takes a sample, which is whole if all was listed. A key that is seen
// first before a whole one may have been there before.
func (b *Board) Update(now time.Time, s Sample, whole bool) {
	if b.Last == nil {
		b.began, b.Rows = now, make(map[string]*Row, len(s))
	}
	gap := now.Sub(b.seen)
	if b.rates = gap <= RateWindow; !b.rates {
		b.began = now
	}
	for _, c := range Compare(b.Last, s) {
		row := b.Rows[c.After.Key]
		if row == nil {
			row = new(Row)
			b.Rows[c.After.Key] = row
			if !b.whole {
				c.Kind = Found
			}
		}
		switch c.Kind {
		case Found:
			row.since, row.early = now, true
		case Taken, Passed:
			if row.since, row.early = now, gap > exact; b.rates {
				row.grants = append(row.grants, now)
			}
		default:
		}
	}
	isPast := func(at time.Time) bool { return at.Before(b.began) || now.Sub(at) >= RateWindow }
	b.looks = append(slices.DeleteFunc(b.looks, isPast), now)
	b.held, b.waiting = 0, 0
	for key, row := range b.Rows {
		row.grants = slices.DeleteFunc(row.grants, isPast)
		if _, isThere := s[key]; !isThere && len(row.grants) == 0 {
			delete(b.Rows, key)
			continue
		}
		row.Info = s.Of(key)
		b.waiting += row.Waiters
		if row.Held {
			b.held++
		} else {
			row.since = time.Time{}
		}
	}
	if b.Last = s; whole {
		b.seen, b.whole = now, true
	}
}

// noticeable is how old a list is that has its age beside it. Usually none is older than a second.
const noticeable = 2 * time.Second

// Ago says how long ago the last whole sample was taken. It is empty if that was just now, and before the first.
func (b *Board) Ago(now time.Time) string {
	age := now.Sub(b.seen)
	if !b.whole || age < noticeable {
		return ""
	}
	return age.Truncate(time.Second).String() + " ago"
}

// HeldFor returns for how long the holder has the key, as far as it was seen.
func (r *Row) HeldFor(now time.Time) time.Duration {
	if r.since.IsZero() {
		return 0
	}
	return now.Sub(r.since)
}

// Rate returns how many grants of a key are seen in a second.
func (b *Board) Rate(r *Row, now time.Time) float64 {
	seen := min(now.Sub(b.began), RateWindow)
	if seen <= 0 {
		return 0
	}
	return float64(len(r.grants)) / seen.Seconds()
}

// isFast reports whether each of several samples had another holder of a key. Then there were more between them, probably.
func (b *Board) isFast(r *Row) bool { return len(r.grants) > 1 && len(r.grants) >= len(b.looks)-1 }
