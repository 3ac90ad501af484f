// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"errors"
	"math/bits"
	"time"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/internal/failure"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// send queues a request in the background.
func (c *Client) send(call *machine.Acquire) {
	c.acquires.Add(c.laneOf(call), call)
}

// sendAll queues requests in the background, those of a lane in one call.
func (c *Client) sendAll(calls []*machine.Acquire) {
	lanes := make(map[int][]*machine.Acquire, 1)
	for _, call := range calls {
		lane := c.laneOf(call)
		lanes[lane] = append(lanes[lane], call)
	}
	for lane, together := range lanes {
		c.acquires.AddAll(lane, together)
	}
}

func (c *Client) laneOf(call *machine.Acquire) int {
	return laneFor(c.session.Lane(call.Key.Name), call.Timeout)
}

// sendAcquires sends a batch of requests that no caller waits for.
func (c *Client) sendAcquires(_ int, calls []*machine.Acquire) {
	requests := make([]store.AcquireRequest, len(calls))
	timeout := calls[0].Timeout
	now := watchdog.Now()
	for i, call := range calls {
		call.Sent = now
		requests[i] = *call.Request()
		timeout = min(timeout, call.Timeout)
	}
	ctx, cancel := context.WithTimeout(c.background, timeout)
	defer cancel()
	replies := c.session.Acquire(ctx, requests)
	for i, call := range calls {
		replies[i].Err = ourTimeout(c.background, replies[i].Err)
		onAcquire(call, &replies[i])
	}
}

// acquire sends an attempt's first request on its caller's own goroutine. This saves the
// uncontended lock two changes of goroutine.
func (c *Client) acquire(caller context.Context, call *machine.Acquire) {
	ctx := c.limits.bound(caller, call.Timeout, 0)
	defer ctx.leave()
	call.Sent = watchdog.Now()
	reply := store.AcquireReply{Err: ErrOutcomeUnknown}
	// This also runs if the store panics. The caller may survive that, and so do other waiters.
	defer func() { onAcquire(call, &reply) }()
	reply = c.session.Acquire(ctx, call.Batch[:])[0]
	call.Ended = reply.Err != nil && caller.Err() != nil
	reply.Err = ourTimeout(c.background, reply.Err)
}

// onAcquire handles the answer to a request.
func onAcquire(call *machine.Acquire, reply *store.AcquireReply) {
	s := stateOf(call.Key)
	s.shard.client.heard(call.Key.Name, reply.Err)
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	now := watchdog.Refresh()
	var fx machine.Effects
	s.machine.Answer(call, reply, now, &fx)
	s.carryOutLocked(&fx, now)
}

// ourTimeout translates the end of a call's own time limit into ErrUnreachable. A context's error
// is reserved for the end of the caller's context.
func ourTimeout(caller context.Context, err error) error {
	ended := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	if ended && caller.Err() == nil {
		return failure.Unreachable(noAnswerError{})
	}
	return err
}

// laneFor divides a lane of the store by the timeout of calls. A call with a short timeout then
// does not cut short others in the same batch.
func laneFor(lane int, timeout time.Duration) int {
	return lane*timeoutClasses + timeoutClass(timeout)
}

// timeoutClasses counts the classes: less than 5 ms, then powers of two, up to 5 s and more.
const timeoutClasses = 12

func timeoutClass(timeout time.Duration) int {
	return min(bits.Len64(uint64(timeout/(5*time.Millisecond))), timeoutClasses-1)
}
