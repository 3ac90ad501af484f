// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asynclock/asynclock-go/watchdog"
)

// closeGrace is how long Close waits, when the last lease has ended, for the store
// to confirm what was given back, and for the log handler.
const closeGrace = time.Second

// Close ends the client. It refuses new work and tells everyone who waits
// [ErrClosed] (a caller whose first request is under way, when that is answered
// or given up, within a second), gives back what is retained or was granted and
// not claimed, then waits until every lease has been unlocked, which it goes on
// renewing, and stops its goroutines. When ctx ends first, the leases that are left
// end with [ErrClosed]; their keys are left to expire, since whoever holds them may
// be at work still, and Close says how many they were.
//
// When the last lease has ended, the store has a second to confirm what was given
// back. What it has not confirmed by then is left to expire, too, and an Unlock that
// waits for it is told so, with [ErrOutcomeUnknown] and [ErrClosed].
//
// It closes nothing that it did not open: the store stays usable. Called again
// it waits for the first call. A nil ctx is [ErrBadOption], and closes nothing.
func (c *Client) Close(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("asynclock: close: %w", errNilContext)
	}
	if c.closing.Swap(true) {
		return c.awaitClosed(ctx)
	}
	defer close(c.closed)
	c.rejectWaiters()
	left := c.drain(ctx)
	stuck := c.stopCalls()
	err := c.closeSession(ctx)
	switch {
	case left > 0:
		return fmt.Errorf("asynclock: close: leases still held: %d: %w", left, waitEnded(ctx))
	case err != nil:
		return fmt.Errorf("asynclock: close: leave the store: %w", err)
	default:
		return stuck
	}
}

// awaitClosed waits for another call of Close.
func (c *Client) awaitClosed(ctx context.Context) error {
	select {
	case <-c.closed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("asynclock: close: %w", waitEnded(ctx))
	}
}

// drain waits until every lease has ended. When ctx ends first, it ends those that are
// left, and returns how many they were. Then it waits for releases that are under way, which
// would cost their waiters a TTL if they were lost.
func (c *Client) drain(ctx context.Context) (left int) {
	if !c.waitNone(&c.inUse, ctx.Done()) {
		left = c.abandonLeases()
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
	defer cancel()
	_ = c.waitNone(&c.inUse, grace.Done()) && c.waitNone(&c.underWay, grace.Done())
	return left
}

// stopCalls ends every call that is under way, and all goroutines. It fails if a call of the
// store or of the log handler does not return.
func (c *Client) stopCalls() error {
	c.stop()
	for _, task := range c.watchdog.Close() {
		task.Fire(watchdog.Now()) // a release that would be repeated: its caller gets an error
	}
	inTime := within(closeGrace, func() {
		c.acquires.Close()
		c.renewals.Close()
		c.releases.Close()
		c.stops.Close()
	})
	c.limits.close()
	if inTime = c.log.Close() && inTime; !inTime {
		return errors.New("asynclock: close: the store or the log handler does not return from a call")
	}
	return nil
}

func (c *Client) closeSession(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
	defer cancel()
	return c.session.Close(ctx)
}

// rejectWaiters tells every waiter that the client is closed, takes back grants that
// nobody has claimed, and gives back what is retained.
func (c *Client) rejectWaiters() {
	for i := range c.shards {
		sh := &c.shards[i]
		sh.mu.Lock()
		for _, s := range sh.keys {
			for w := s.waiters.pop(); w != nil; w = s.waiters.pop() {
				w.failLocked(ErrClosed)
			}
			switch {
			case s.attempt != nil:
				s.headChangedLocked()
			case s.retainedLocked():
				s.releaseRetainedLocked()
			case s.holding != nil && s.holding.lease.waiter != nil:
				s.revokeUnclaimedLocked(ErrClosed)
			}
		}
		sh.mu.Unlock()
	}
}

// within calls f and waits for it, for at most d. It reports whether f returned.
func within(d time.Duration, f func()) bool {
	returned := make(chan struct{})
	go func() { // ends when f does
		f()
		close(returned)
	}()
	limit := time.NewTimer(d)
	defer limit.Stop()
	select {
	case <-returned:
		return true
	case <-limit.C:
		return false
	}
}

// waitNone waits until nothing is counted in n any more, or until done is closed,
// and reports which.
func (c *Client) waitNone(n *atomic.Int64, done <-chan struct{}) bool {
	for n.Load() > 0 {
		select {
		case <-c.unused:
		case <-done:
			return n.Load() == 0
		}
	}
	return true
}

// abandonLeases ends every lease, leaves its key to expire, and returns how many
// there were.
func (c *Client) abandonLeases() int {
	n := 0
	for i := range c.shards {
		sh := &c.shards[i]
		sh.mu.Lock()
		for _, s := range sh.keys {
			if s.holding != nil { // and has a lease, because rejectWaiters has left none retained
				n++
				s.holding.lease.endAllLocked(ErrClosed)
				s.forgetOwnerLocked()
				s.dropLocked()
			}
		}
		sh.mu.Unlock()
	}
	return n
}
