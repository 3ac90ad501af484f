// SPDX-License-Identifier: Apache-2.0

package memstore

import "time"

// rememberWithdrawn is how long a withdrawn owner stays refused. A request of
// this process that is still under way by then is hard to imagine; it would get
// a lease that its TTL ends.
const rememberWithdrawn = time.Minute

// Withdrawals are the owners that were withdrawn while an earlier request of
// theirs was unanswered. They are refused for a while, in case it comes late.
// An owner is an identity of its own, whatever its key.
type withdrawals struct {
	until map[string]time.Time
	order []string // oldest first, which is also the first to be forgotten
}

func newWithdrawals() withdrawals {
	return withdrawals{until: make(map[string]time.Time)}
}

func (g *withdrawals) add(owner string, now time.Time) {
	g.forget(now)
	if _, known := g.until[owner]; known {
		return
	}
	g.until[owner] = now.Add(rememberWithdrawn)
	g.order = append(g.order, owner)
}

func (g *withdrawals) has(owner string, now time.Time) bool {
	g.forget(now)
	_, known := g.until[owner]
	return known
}

func (g *withdrawals) forget(now time.Time) {
	for len(g.order) > 0 && !now.Before(g.until[g.order[0]]) {
		delete(g.until, g.order[0])
		g.order = g.order[1:]
	}
}
