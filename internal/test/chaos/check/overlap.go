// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"slices"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// checkOverlaps: no two trusted leases of a key overlap, except where the store
// lost what it had acknowledged.
//
// A lease is known to be trusted from its answer until just before the last call of Valid
// that returned true. Trust ends only once, so the lease was trusted in between. Later trust
// is not assumed. So this accuses nobody wrongly, however slow the machine.
func (c *checker) checkOverlaps(k *key) {
	var trusted []*lease // those that may still be, when the next one begins
	for _, l := range k.leases {
		trusted = slices.DeleteFunc(trusted, func(old *lease) bool { return old.valid <= l.told })
		for _, old := range trusted {
			if l.valid == l.told || old.fits(l) { // for no time that is known
				continue
			}
			if f := c.excuse(old, l); f != nil {
				f.excused++
				c.report.Excused++
				old.excused, l.excused = true, true
				continue
			}
			c.violate("overlap", k.name,
				"%s (token %d, from %v until at least %v, TTL %v, by %s) and %s (token %d, from %v until at least %v, TTL %v, by %s) are trusted at once",
				old.op, old.token, old.told, old.valid, old.ttl, old.how, l.op, l.token, l.told, l.valid, l.ttl, l.how)
		}
		trusted = append(trusted, l)
	}
}

// trace finds out of which holdings the leases are. A client that passes its key on
// inside gives each lease the token after the last one. Some may be missing: those of
// callers that had given up.
func (k *key) trace() {
	const missing = 10 // at most; the store's own tokens are further apart, by the clock
	byToken := slices.Clone(k.leases)
	slices.SortFunc(byToken, func(a, b *lease) int {
		return cmp.Or(cmp.Compare(a.token, b.token), cmp.Compare(a.process(), b.process()), cmp.Compare(a.asked, b.asked))
	})
	for i, l := range byToken {
		l.since = l.asked
		if i == 0 {
			continue
		}
		if before := byToken[i-1]; before.process() == l.process() && l.token-before.token <= 1+missing {
			l.since = min(l.since, before.since)
		}
	}
}

// process names whose request it was.
func (l *lease) process() string { return process(l.op) }

// excuse finds the loss of data that explains why two leases overlap. One of the two was
// requested before the loss was over. The second began after the loss had begun, and before
// the first could have noticed. A client that has lost its key in the store learns this by
// its next renewal, and trusts the key for a TTL at most.
//
// A clock that was set forward loses no more than the last of each TTL, so it
// explains no longer overlap than that.
func (c *checker) excuse(first, second *lease) *fault {
	older, newer := first, second
	if older.token > newer.token {
		older, newer = newer, older
	}
	for _, f := range c.faults {
		if !f.Lossy || f.Key != "" && f.Key != second.key {
			continue
		}
		if f.Step > 0 && older.valid-newer.told > c.early(older, newer) {
			continue
		}
		if min(first.since, second.since) <= f.End && second.told >= f.Begin && second.told <= f.End+max(first.ttl, second.ttl) {
			return f
		}
	}
	return nil
}

// early is by how much the store's clock was set forward after it had set the older
// lease's TTL, and before it gave the key to the newer one, if they overlap.
func (c *checker) early(older, newer *lease) (sum history.Time) {
	for _, f := range c.faults {
		if f.Begin <= newer.told && f.End >= newer.told-older.ttl {
			sum += f.Step
		}
	}
	return sum
}
