// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"slices"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// checkOrder: tokens of a key are never given twice, and a lease that was asked
// for when another one had been given has the larger token.
//
// The second has an excuse, the first has none. A client whose holding the store
// has lost may go on passing it on inside, until it notices, with the tokens that
// follow the old one. (A clock that is set back needs no excuse: docs/chaos.md says
// why tokens rise all the same, the way runs do it.)
func (c *checker) checkOrder(k *key) {
	seen := make(map[int64]*lease, len(k.leases))
	for _, l := range k.leases {
		if other := seen[l.token]; other != nil && !l.mayShareToken(other) {
			c.violate("token order", k.name, "%s and %s both have token %d", other.op, l.op, l.token)
		}
		seen[l.token] = l
	}
	byAsked := slices.Clone(k.leases)
	slices.SortFunc(byAsked, func(a, b *lease) int { return cmp.Compare(a.asked, b.asked) })
	var newest, newestWhole *lease // with the largest tokens of those that had been given; not of permits
	next := 0
	for _, l := range byAsked {
		for ; next < len(k.leases) && k.leases[next].told < l.asked; next++ {
			given := k.leases[next]
			if newest == nil || given.token > newest.token {
				newest = given
			}
			if given.mode != history.Permits && (newestWhole == nil || given.token > newestWhole.token) {
				newestWhole = given
			}
		}
		largest := newest
		if largest != nil && !l.isOrdered(largest) {
			largest = newestWhole
		}
		switch {
		case largest == nil || l.token > largest.token || l.token == largest.token && l.mayShareToken(largest):
		case l.token < largest.token && c.wasLost(largest, l):
			l.overtaken = true
			c.report.Overtaken++
		case l.token < largest.token:
			c.violate("token order", k.name, "%s was asked for at %v and has token %d, when %s already had %d",
				l.op, l.asked, l.token, largest.op, largest.token)
		}
	}
}

// wasLost reports whether the store may have lost what l was handed on from, and
// have given the key anew to overtaker, so lately that nobody need have noticed.
func (c *checker) wasLost(overtaker, l *lease) bool {
	for _, f := range c.faults {
		if f.Step > 0 && l.told-overtaker.told > c.early(l, overtaker) {
			continue // its key was not given away so early
		}
		if f.Lossy && (f.Key == "" || f.Key == l.key) && overtaker.told >= f.Begin && l.told <= f.End+l.ttl {
			return true
		}
	}
	return false
}
