// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// A holding is a lease at work.
type holding struct {
	*caller
	task    task
	lease   *asynclock.Lease
	valid   history.Time // known to have been trusted until then
	refused int          // stale writes
}

// ask asks whether the lease is trusted. The time is read before, so that yes
// means until then at least.
func (h *holding) ask() bool {
	now := history.Now()
	if !h.lease.Valid(0) {
		return false
	}
	h.valid = now
	return true
}

// work holds the key for its time, and writes meanwhile.
func (h *holding) work() {
	const step = 10 * time.Millisecond
	end := time.Now().Add(h.task.hold)
	for writes := h.task.writes; ; {
		if writes > 0 {
			h.write()
			writes--
		}
		trusted := h.ask()
		left := time.Until(end)
		switch {
		case trusted && h.task.toEnd:
			left = step
		case !trusted && !h.task.blindly, left <= 0 && writes == 0:
			return
		}
		if left > 0 {
			time.Sleep(min(left, step))
		}
	}
}

// write adds one to a resource's number.
func (h *holding) write() {
	r := h.resource()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if !h.task.blindly && !h.ask() {
		return
	}
	value, accepted, err := r.read(ctx, h.task.key, h.task.op, h.lease.Token())
	if err == nil && accepted {
		if h.task.hold > 0 {
			time.Sleep(h.upTo(h.task.hold))
		}
		if !h.task.blindly && !h.ask() {
			return
		}
		accepted, err = r.write(ctx, h.task.key, h.task.op, h.lease.Token(), value, value+1)
	}
	switch {
	case err != nil:
		h.history.Add(history.Record{Kind: history.Left, Whom: h.Name, Error: fmt.Sprintf("resource %s: %v", r.name(), err)})
	case !accepted:
		h.refused++
	}
}

// resource picks one. Rows have a lesser share, since a transaction costs more than
// the rest of a lease, and it is leases that are to be many.
func (h *holding) resource() resource {
	if h.rows != nil && h.chance(h.Habits.Rows) {
		return h.rows
	}
	return h.resources[h.rand.IntN(len(h.resources))]
}

// ended tells of the end: the lease was given back at over, with that answer.
func (h *holding) ended(over history.Time, err error) { h.history.Add(h.ending(over, err)) }

func (h *holding) ending(over history.Time, err error) history.Record {
	r := history.Record{
		Kind: history.Ended, Op: h.task.op, Valid: h.valid, Begin: over, End: history.Now(),
		Unlocked: err == nil, Refused: h.refused,
	}
	if err != nil {
		r.Error = errorName(err)
	}
	return r
}
