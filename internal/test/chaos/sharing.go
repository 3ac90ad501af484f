// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// Keys that are not always taken as a whole: how many there are of each kind, and how many permits a key
// has. Readers and writers use the keys r1 and so on. Now and then the keys of permits are locked, too.
const (
	sharedKeys = 4
	permits    = 3
)

// share makes t a task for a key that is shared, in one of the ways to take it.
func (c *caller) share(t *task) {
	number := 1 + c.rand.IntN(sharedKeys)
	if c.chance(2) {
		t.key = fmt.Sprint("r", number)
		if !c.chance(5) {
			t.mode = history.Shared
			t.how = []string{"RLock", "RLockChan", "WithRLock", "TryRLock"}[c.rand.IntN(4)]
		}
		return
	}
	t.key = fmt.Sprint("p", number)
	if !c.chance(20) {
		t.mode, t.weight = history.Permits, 1
		if c.chance(3) {
			t.weight += c.rand.IntN(permits)
		}
		t.how = []string{"Acquire", "AcquireChan", "TryAcquire"}[c.rand.IntN(3)]
	}
}

// limit is how many permits the task's key has; 0 if it takes none.
func (t *task) limit() int {
	if t.mode == history.Permits {
		return permits
	}
	return 0
}

// take takes the task's key.
func (c *caller) take(ctx context.Context, t task) (*asynclock.Lease, error) {
	switch t.how {
	case "Lock":
		return c.locks.Lock(ctx, t.key, t.options...)
	case "TryLock":
		return c.locks.TryLock(ctx, t.key, t.options...)
	case "LockChan":
		return (<-c.locks.LockChan(ctx, t.key, t.options...)).Lease()
	case "RLock":
		return c.locks.RLock(ctx, t.key, t.options...)
	case "TryRLock":
		return c.locks.TryRLock(ctx, t.key, t.options...)
	case "RLockChan":
		return (<-c.locks.RLockChan(ctx, t.key, t.options...)).Lease()
	}
	s, err := c.locks.Semaphore(t.key, permits)
	if err != nil {
		return nil, err
	}
	switch t.how {
	case "Acquire":
		return s.Acquire(ctx, t.weight, t.options...)
	case "TryAcquire":
		return s.TryAcquire(ctx, t.weight, t.options...)
	default:
		return (<-s.AcquireChan(ctx, t.weight, t.options...)).Lease()
	}
}
