// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/internal/backoff"
	"github.com/asynclock/asynclock-go/internal/failure"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A releaseCall gives back a key, or a place in its queue. It is repeated until the store has
// answered or the TTL has ended the holding, even if nobody waits for it.
type releaseCall struct {
	core   machine.Release
	ctx    context.Context //nolint:containedctx // for its values; nil: the client's
	client *Client
	entry  watchdog.Entry // the next repetition

	lane  int
	tries int
	first watchdog.Instant // when it was first sent; HoldBack counts from then

	notify func(error) // is called with the answer; nil if nobody asked

	mu       sync.Mutex
	finished bool
	err      error         // the answer, once finished
	done     chan struct{} // closed when finished; nil until somebody waits, which is rare
}

// callOf returns the call that the machine knows as r.
func callOf(r *machine.Release) *releaseCall {
	return r.Caller.(*releaseCall) //nolint:forcetypeassert // NewRelease has put it there
}

// queue sends the release in the background.
func (r *releaseCall) queue() {
	if !r.client.releases.Add(r.laneNow(), r) {
		r.finish(failure.Join(ErrOutcomeUnknown, ErrClosed))
	}
}

// releaseAll sends releases in the background, those of a lane in one call.
func (c *Client) releaseAll(calls []*releaseCall) {
	lanes := make(map[int][]*releaseCall, 1)
	for _, call := range calls {
		lane := call.laneNow()
		lanes[lane] = append(lanes[lane], call)
	}
	for lane, together := range lanes {
		if c.releases.AddAll(lane, together) {
			continue
		}
		for _, call := range together {
			call.finish(failure.Join(ErrOutcomeUnknown, ErrClosed))
		}
	}
}

// timeout returns how long the next try may take.
func (r *releaseCall) timeout() time.Duration {
	return backoff.Doubled(machine.CallTimeout(r.core.TTL), r.tries, machine.Patience(r.core.TTL))
}

// unlockGrace is how long Unlock goes on waiting for the store when its context has ended. A store
// nearby answers in that time, and then the caller knows that the key was given back.
const unlockGrace = 50 * time.Millisecond

// releaseNow sends releases on their caller's own goroutine. It returns soon after the end of ctx;
// the releases are then repeated in the background. All are of one lane.
func (c *Client) releaseNow(ctx context.Context, calls ...*releaseCall) {
	timeout := calls[0].timeout()
	for _, call := range calls {
		call.ctx = ctx //nolint:fatcontext // each has the caller's
		timeout = min(timeout, call.timeout())
	}
	bounded := c.limits.bound(ctx, timeout, unlockGrace)
	defer bounded.leave()
	c.sendReleasesUnder(bounded, calls, true)
}

// releaseAllNow is releaseNow for any lanes.
func (c *Client) releaseAllNow(ctx context.Context, calls []*releaseCall) {
	eachLane(calls, (*releaseCall).laneNow, func(together []*releaseCall) { c.releaseNow(ctx, together...) })
}

// laneNow returns the lane of the next try.
func (r *releaseCall) laneNow() int { return laneFor(r.lane, r.timeout()) }

// sendReleases sends a batch of releases.
func (c *Client) sendReleases(_ int, calls []*releaseCall) {
	timeout := calls[0].timeout()
	for _, call := range calls {
		timeout = min(timeout, call.timeout())
	}
	parent := c.background
	if len(calls) == 1 && calls[0].ctx != nil {
		parent = context.WithoutCancel(calls[0].ctx)
	}
	ctx := c.limits.bound(parent, timeout, 0)
	defer ctx.leave()
	c.sendReleasesUnder(ctx, calls, false)
}

// next returns the request of the next try, which begins now.
func (r *releaseCall) next(now watchdog.Instant) store.ReleaseRequest {
	if r.tries++; r.tries == 1 {
		r.first = now
	}
	request := *r.core.Request()
	request.HoldBack = max(request.HoldBack-now.Sub(r.first), 0)
	request.Clean = request.Clean && r.tries == 1 && now < r.core.Trusted
	if r.core.Requeue == nil {
		request.Requeue = nil
	} else {
		r.core.Requeue.Sent = now
	}
	return request
}

// sendReleasesUnder sends a batch of releases, and waits for the answers as long as ctx lasts.
func (c *Client) sendReleasesUnder(ctx context.Context, calls []*releaseCall, byCaller bool) {
	requests := calls[0].core.Batch[:]
	if len(calls) > 1 || calls[0].tries > 0 { // a store that is slow may still read those of the first try
		requests = make([]store.ReleaseRequest, len(calls))
	}
	now := watchdog.Refresh()
	for i, call := range calls {
		requests[i] = call.next(now)
	}
	var replies []store.ReleaseReply
	defer func() {
		for i, call := range calls {
			reply := store.ReleaseReply{Err: ErrOutcomeUnknown} // if the store panics, as in acquire
			if replies != nil {
				reply = replies[i]
			}
			reply.Err = ourTimeout(c.background, reply.Err)
			call.onRelease(&reply)
		}
		c.hooks.called("release", now, byCaller, len(replies), func(i int) error { return replies[i].Err })
	}()
	replies = c.session.Release(ctx, requests)
}

// left tells the key's machine of the first answer to a release that leaves. Err says why there was none.
func (r *releaseCall) left(err error) {
	if !r.core.Leaves {
		return
	}
	r.core.Leaves = false
	key := r.core.Request().Key
	sh := r.client.shardOf(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.leaving[key]--; sh.leaving[key] == 0 {
		delete(sh.leaving, key)
	}
	if s := sh.keys[key]; s != nil {
		st := s.stepNow()
		s.machine.Left(err, &st)
		s.carryOutLocked(&st)
	}
}

// onRelease handles the answer to a release.
func (r *releaseCall) onRelease(reply *store.ReleaseReply) {
	r.client.heard(r.core.Request().Key, reply.Err)
	r.left(reply.Err)
	if requeue := r.core.Requeue; requeue != nil {
		answer := reply.Requeue
		if answer == nil {
			answer = &store.AcquireReply{Err: cmp.Or(reply.Err, ErrOutcomeUnknown)}
		}
		// From here on the attempt continues independently. A repeated release must not put it back
		// into a queue that it has left.
		r.core.Requeue = nil
		onAcquire(requeue, answer)
	}
	switch {
	case reply.Err != nil && r.repeats(reply.Err):
	case r.core.Request().Rest != nil:
		r.finish(r.rested(reply))
	case reply.Err == nil && (reply.WasHeld || r.explained()):
		r.finish(nil)
	case reply.Err == nil:
		err := r.core.Lost(reply.Cause)
		r.noteLoss(err)
		r.finish(err)
	default:
		r.finish(r.unconfirmed(reply.Err))
	}
}

// noteLoss counts and logs that the key was not ours any more. If nobody had it, that harms nobody, unless another was given it:
// somebody may have had it at that time.
func (r *releaseCall) noteLoss(cause error) {
	text := "unlock found that the lease was lost"
	if r.core.Unheld {
		if !errors.Is(cause, ErrStolen) && !errors.Is(cause, ErrForced) {
			return
		}
		text = "another has a key that was retained"
	}
	r.client.foundLost.Add(1)
	r.client.log.Add(slog.LevelWarn, text,
		slog.String("key", r.core.Request().Key), slog.Int64("token", r.core.Request().Token), slog.Any("cause", cause))
}

// repeats reports whether the release is sent again later.
func (r *releaseCall) repeats(err error) bool {
	return failure.Transient(err) && watchdog.Refresh() < r.core.Until && r.client.background.Err() == nil &&
		r.client.watchdog.Set(&r.entry, watchdog.Now().Add(machine.RetryIn(r.tries, r.core.TTL)))
}

// unconfirmed returns the error of a release that the store has never confirmed.
func (r *releaseCall) unconfirmed(err error) error {
	r.client.unconfirmed.Add(1)
	if r.client.background.Err() != nil {
		err = failure.Join(ErrOutcomeUnknown, ErrClosed)
	}
	said := "release was never confirmed; the key is free when its TTL has passed"
	if r.core.Request().Rest != nil {
		said = "release of permits was never confirmed; a renewal gives them back, or the end of the TTL"
	}
	r.client.log.Add(slog.LevelWarn, said,
		slog.String("key", r.core.Request().Key), slog.Any("error", err))
	return err
}

// rested handles the last answer to the release of a part, and returns the answer for who waits.
func (r *releaseCall) rested(reply *store.ReleaseReply) error {
	if reply.Err != nil {
		reply.Err = r.unconfirmed(reply.Err)
	}
	s := stateOf(r.core.Key)
	st := s.begin()
	defer s.end(&st)
	err := s.machine.Rested(&r.core, reply, &st)
	if reply.Err == nil && r.explained() {
		return nil
	}
	if reply.Err == nil && err != nil {
		r.client.foundLost.Add(1)
	}
	return err
}

// explained reports whether "nothing to release" can be explained without a lost lease: an earlier
// try succeeded, or the TTL ended while this request was in flight.
func (r *releaseCall) explained() bool {
	return r.tries > 1 || watchdog.Refresh() >= r.core.Trusted
}

// Fire repeats the release.
func (r *releaseCall) Fire(watchdog.Instant) { r.queue() }

// finish records the answer and tells those who wait.
func (r *releaseCall) finish(err error) {
	r.mu.Lock()
	r.err, r.finished = err, true
	done := r.done
	r.mu.Unlock()
	if done != nil {
		close(done)
	}
	if r.notify != nil {
		r.notify(err)
	}
	r.client.leaveOf(&r.client.underWay)
}

// wait returns a channel that is closed when the answer is known, or nil if it is known already.
func (r *releaseCall) wait() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished {
		return nil
	}
	if r.done == nil {
		r.done = make(chan struct{})
	}
	return r.done
}
