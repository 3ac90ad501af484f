// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// fits reports whether two leases may be trusted at the same time, as far as their modes say.
func (l *lease) fits(other *lease) bool {
	return l.mode == other.mode && l.mode != history.Exclusive
}

// isOrdered reports whether the tokens of the two have an order. Readers between two writers have one token.
// Permits have the number of their grant, of which others may be taken later.
func (l *lease) isOrdered(other *lease) bool {
	return l.mode != history.Permits || other.mode != history.Permits
}

// mayShareToken reports whether two leases may have the same token.
func (l *lease) mayShareToken(other *lease) bool {
	switch {
	case l.mode != other.mode:
		return false
	case l.mode == history.Permits:
		return l.process() == other.process()
	}
	return l.mode == history.Shared
}

// checkPermits: never are more permits trusted than any of their holders believes there are, except where
// the store lost what it had acknowledged.
func (c *checker) checkPermits(k *key) {
	var trusted []*lease
	for _, l := range k.leases {
		if l.mode != history.Permits || l.valid == l.told {
			continue
		}
		trusted = append(slices.DeleteFunc(trusted, func(old *lease) bool { return old.valid <= l.told }), l)
		sum, limit := 0, l.limit
		for _, held := range trusted {
			sum += held.weight
			limit = min(limit, held.limit)
		}
		if sum <= limit || c.excusesAny(trusted, l) {
			continue
		}
		c.violate("permits", k.name, "%s (token %d, %d permits from %v until at least %v, by %s) makes %d of %d that are trusted at once",
			l.op, l.token, l.weight, l.told, l.valid, l.how, sum, limit)
	}
}

// excusesAny reports whether a loss of data explains that one of the leases is trusted beside l. They are all
// excused then: which of them was lost, nobody knows.
func (c *checker) excusesAny(trusted []*lease, l *lease) bool {
	for _, old := range trusted {
		if old == l {
			continue
		}
		if f := c.excuse(old, l); f != nil {
			f.excused++
			c.report.Excused++
			old.excused, l.excused = true, true
			return true
		}
	}
	return false
}
