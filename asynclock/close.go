// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/asynclock/asynclock-go/internal/failure"
	"github.com/asynclock/asynclock-go/watchdog"
)

// closeGrace is how long Close waits for the store and for the log handler when nothing goes on. While
// the store confirms releases, Close waits for the next one: there may be a hundred thousand.
const closeGrace = time.Second

// closeSilence is how long Close waits for leases before the log names them.
const closeSilence = time.Second

// Close ends the client:
//
//   - It refuses new work.
//   - It answers all waiters with [ErrClosed]. A caller whose first request is under way gets it
//     when the request is answered or given up, within a second.
//   - It gives back retained keys, and leases that nobody has received from a future. A result that somebody receives
//     before that is a lease like any other.
//   - It waits until every lease has been unlocked. Until then it renews them. After a second the
//     log names up to ten of the leases that Close waits for.
//   - It stops the client's goroutines.
//
// If ctx ends first, the remaining leases end with [ErrClosed], and the error of Close says how
// many they were. Their keys are left to expire, because their holders may still be at work. If ctx
// has ended before the call, Close waits for a second instead. So work that ended with the same
// context can still unlock.
//
// After the last lease has ended, Close waits for the store to confirm releases, as long as it
// confirms one within each second. When ctx has ended, all of them have a second. An unconfirmed
// release is left to expire too, and an Unlock that waits for it fails with [ErrOutcomeUnknown] and
// [ErrClosed].
//
// The error is [ErrUnreachable] if a silent store keeps the client's connections for more than a second.
//
// Close does not close the store, which stays usable, except with [WithOwnedStore]. A second call
// waits for the first. A nil ctx is [ErrInvalidOption], and closes nothing.
func (c *Client) Close(ctx context.Context) error {
	if err := c.close(ctx); err != nil {
		return &Error{Op: "close", Err: err}
	}
	return nil
}

// The parts of Close that depend on the store.
var (
	errLeaveStore = errors.New("leave the store")
	errCloseStore = errors.New("close the store")
	errStuck      = errors.New("the store, the log handler or a hook does not return from a call")
)

func (c *Client) close(ctx context.Context) error {
	if err := c.check(ctx); err != nil {
		return err
	}
	if c.closing.Swap(true) {
		return c.awaitClosed(ctx)
	}
	defer close(c.closed)
	c.observers.close()
	c.rejectWaiters()
	left := c.drain(ctx)
	stuck := c.stopCalls()
	err := c.closeSession(ctx)
	closeErr := c.closeStore()
	switch {
	case left > 0:
		return fmt.Errorf("leases still held: %d: %w", left, waitEnded(ctx))
	case err != nil:
		return failure.Join(errLeaveStore, err)
	case stuck != nil:
		return stuck
	case closeErr != nil:
		return failure.Join(errCloseStore, closeErr)
	}
	return nil
}

// awaitClosed waits for another call of Close.
func (c *Client) awaitClosed(ctx context.Context) error {
	select {
	case <-c.closed:
		return nil
	default:
	}
	select {
	case <-c.closed:
		return nil
	case <-ctx.Done():
		return waitEnded(ctx)
	}
}

// drain waits until every lease has ended. If ctx ends first, it ends the remaining leases and
// returns how many they were. Then it waits for releases that are under way, because a lost release
// would cost the next waiter a TTL.
func (c *Client) drain(ctx context.Context) (left int) {
	if !c.awaitLeases(ctx) {
		left = c.abandonLeases()
	}
	c.awaitReleases(ctx)
	return left
}

// awaitReleases waits until the store has confirmed every release. It stops when a second has brought
// no confirmation, or when ctx has ended and a second has passed.
func (c *Client) awaitReleases(ctx context.Context) {
	for {
		before := c.underWay.Load()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
		none := c.waitNone(&c.inUse, grace.Done()) && c.waitNone(&c.underWay, grace.Done())
		cancel()
		if none || ctx.Err() != nil || c.underWay.Load() >= before {
			return
		}
	}
}

// awaitLeases waits until every lease has ended. It reports false if ctx has ended first.
func (c *Client) awaitLeases(ctx context.Context) bool {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
		defer cancel()
	}
	first, cancel := context.WithTimeout(ctx, closeSilence)
	none := c.waitNone(&c.inUse, first.Done())
	cancel()
	if none || ctx.Err() != nil {
		return none
	}
	c.logHeld()
	return c.waitNone(&c.inUse, ctx.Done())
}

// logHeld logs for which leases Close waits.
func (c *Client) logHeld() {
	const most = 10
	held, examples := 0, make([]string, 0, most)
	for i := range c.shards {
		sh := &c.shards[i]
		sh.mu.Lock()
		for key, s := range sh.keys {
			token, holder, ok := s.machine.Held()
			if !ok {
				continue
			}
			if held++; held <= most {
				examples = append(examples, fmt.Sprintf("%q, token %d, taken by %s", key, token, holder))
			}
		}
		sh.mu.Unlock()
	}
	if held > 0 {
		c.log.Add(slog.LevelWarn, "Close waits for leases that were not unlocked",
			slog.Int("leases", held), slog.Any("examples", examples))
	}
}

// stopCalls ends every call that is under way, and all goroutines. It fails if a call of the store
// of the log handler or of a hook does not return.
func (c *Client) stopCalls() error {
	c.stop()
	c.hooks.end()
	for _, task := range c.watchdog.Close() {
		task.Fire(watchdog.Now()) // a release that would be repeated: its caller gets an error
	}
	inTime := within(closeGrace, func() {
		c.acquires.Close()
		c.renewals.Close()
		c.overdue.flying.Wait()
		c.releases.Close()
		c.stops.Close()
		c.hooks.close()
	})
	c.limits.close()
	if inTime = c.log.Close() && inTime; !inTime {
		return errStuck
	}
	return nil
}

func (c *Client) closeSession(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
	defer cancel()
	err := c.session.Close(ctx)
	if errors.Is(err, context.DeadlineExceeded) { // ours, which means nothing to the caller
		return fmt.Errorf("%w: it does not let go within %v", ErrUnreachable, closeGrace)
	}
	return err
}

// rejectWaiters answers every waiter with ErrClosed, takes back what lies in channels, and gives
// retained keys back.
func (c *Client) rejectWaiters() {
	for i := range c.shards {
		sh := &c.shards[i]
		sh.mu.Lock()
		for _, s := range sh.keys {
			st := s.stepNow()
			s.machine.TurnAway(ErrClosed, &st)
			s.carryOutLocked(&st)
		}
		sh.mu.Unlock()
	}
}

// within calls f and waits for it for at most d. It reports whether f returned.
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

// waitNone waits until n is 0 or done is closed. It reports whether n is 0.
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

// abandonLeases ends every lease and leaves its key to expire. It returns how many leases there
// were.
func (c *Client) abandonLeases() int {
	n := 0
	for i := range c.shards {
		sh := &c.shards[i]
		sh.mu.Lock()
		for _, s := range sh.keys {
			st := s.stepNow()
			n += s.machine.Abandon(ErrClosed, &st)
			s.carryOutLocked(&st)
		}
		sh.mu.Unlock()
	}
	return n
}
