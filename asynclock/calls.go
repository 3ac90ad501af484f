// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"errors"
	"math/bits"
	"slices"
	"sync"
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
	c.hooks.called("acquire", now, false, len(replies), func(i int) error { return replies[i].Err })
}

// acquire sends the first requests of attempts on their caller's own goroutine. This saves the
// uncontended lock two changes of goroutine. All are of one lane.
func (c *Client) acquire(caller context.Context, byCaller bool, calls ...*machine.Acquire) {
	requests, timeout := calls[0].Batch[:], calls[0].Timeout
	if len(calls) > 1 {
		requests = make([]store.AcquireRequest, len(calls))
	}
	for i, call := range calls[1:] {
		requests[0], requests[i+1] = *calls[0].Request(), *call.Request()
		timeout = min(timeout, call.Timeout)
	}
	ctx := c.limits.bound(caller, timeout, 0)
	defer ctx.leave()
	now := watchdog.Now()
	for _, call := range calls {
		call.Sent = now
	}
	var replies []store.AcquireReply
	// This also runs if the store panics. The caller may survive that, and so do other waiters.
	defer func() {
		for i, call := range calls {
			reply := store.AcquireReply{Err: ErrOutcomeUnknown}
			if replies != nil {
				reply = replies[i]
			}
			onAcquire(call, &reply)
		}
		c.hooks.called("acquire", now, byCaller, len(replies), func(i int) error { return replies[i].Err })
	}()
	answers := c.session.Acquire(ctx, requests)
	for i, call := range calls {
		call.Ended = answers[i].Err != nil && caller.Err() != nil
		answers[i].Err = ourTimeout(c.background, answers[i].Err)
	}
	replies = answers
}

// acquireAll is acquire for any lanes. It returns when all requests are answered.
func (c *Client) acquireAll(caller context.Context, byCaller bool, calls []*machine.Acquire) {
	eachLane(calls, c.laneOf, func(together []*machine.Acquire) { c.acquire(caller, byCaller, together...) })
}

// eachLane sends the calls of each lane together, the lanes side by side. It returns when all are
// answered. If there is one lane, as usual, send runs on the caller's own goroutine.
func eachLane[T any](calls []T, laneOf func(T) int, send func(together []T)) {
	if len(calls) == 0 {
		return
	}
	first := laneOf(calls[0])
	if !slices.ContainsFunc(calls, func(call T) bool { return laneOf(call) != first }) {
		send(calls)
		return
	}
	lanes := make(map[int][]T)
	for _, call := range calls {
		lane := laneOf(call)
		lanes[lane] = append(lanes[lane], call)
	}
	var flying sync.WaitGroup
	panics := make(chan any, len(lanes))
	for _, together := range lanes {
		flying.Go(func() { // ends with the call; the caller waits for it
			defer func() {
				if p := recover(); p != nil {
					panics <- p
				}
			}()
			send(together)
		})
	}
	flying.Wait()
	if len(panics) > 0 {
		panic(<-panics) // the caller may survive it, as with one lane
	}
}

// onAcquire handles the answer to a request.
func onAcquire(call *machine.Acquire, reply *store.AcquireReply) {
	s := stateOf(call.Key)
	s.shard.client.heard(call.Key.Name, reply.Err)
	st := s.begin()
	defer s.end(&st)
	s.machine.Answer(call, reply, &st)
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
