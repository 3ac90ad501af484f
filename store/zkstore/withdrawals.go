// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"time"

	"github.com/asynclock/asynclock-go/internal/clock"
)

// rememberWithdrawn is how long a withdrawn owner stays refused. All its requests
// come through this process, so that none is under way for longer is certain.
const rememberWithdrawn = 2 * time.Minute

// withdrawals are the owners that were withdrawn while a request of theirs was
// unanswered. They are refused for a while.
type withdrawals struct {
	until map[string]clock.Instant
	order []string // oldest first
}

func newWithdrawals() withdrawals {
	return withdrawals{until: make(map[string]clock.Instant)}
}

func (w *withdrawals) add(owner string, now clock.Instant) {
	w.forget(now)
	if _, known := w.until[owner]; known {
		return
	}
	w.until[owner] = now.Add(rememberWithdrawn)
	w.order = append(w.order, owner)
}

func (w *withdrawals) has(owner string, now clock.Instant) bool {
	w.forget(now)
	_, known := w.until[owner]
	return known
}

func (w *withdrawals) forget(now clock.Instant) {
	for len(w.order) > 0 && now >= w.until[w.order[0]] {
		delete(w.until, w.order[0])
		w.order = w.order[1:]
	}
}
