// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"errors"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/internal/failure"
	"github.com/asynclock/asynclock-go/watchdog"
)

// Lock takes the key and waits for it as long as ctx lasts, or as long as [WithWait] says. Both bound
// only the waiting: once Lock has returned, the lease does not depend on ctx.
//
// If the store has a queue, clients are served in the order in which they queued. The waiters of
// one client are served in the order in which they came. If ctx was made under a lease of the same
// key that still lasts (see [Lease.Context]), Lock fails at once with [ErrReentry], or joins that lease
// with [WithReentry](true).
//
// Errors: ctx's own and its cause, [ErrQueueFull], [ErrUnreachable] when the store has not answered
// for a third of the TTL (at least one second, at most ten), [ErrTooSlow] when its answers came too
// late for as long, [ErrReentry], [ErrUpgrade], [ErrClosed], [ErrInvalidKey], [ErrInvalidOption], [ErrForeignData],
// [ErrDenied].
// When ctx ends the wait, the error also matches what the call waited for, as far as the client
// knows: [ErrHeld] as a [*HeldError], [ErrGrace] or ErrUnreachable. After an error the client holds
// nothing. If a lost request took the key, the client gives it back in the background.
func (c *Client) Lock(ctx context.Context, key string, options ...LockOption) (*Lease, error) {
	return c.lock(newWaiter(ctx), "lock", key, options)
}

// lock implements the calls that return a lease. Op is the call's name in errors.
func (c *Client) lock(w *waiter, op, key string, options []LockOption) (*Lease, error) {
	l, err := c.acquireLease(w, op, key, options)
	if err != nil {
		c.countFailed(w, key, err)
		err = &Error{op, key, err}
		w.asked().waited(err)
		return nil, err
	}
	if a := w.asked(); a != nil {
		a.begin(l)
	}
	return l, nil
}

func (c *Client) acquireLease(w *waiter, op, key string, options []LockOption) (*Lease, error) {
	key = c.spell(key)
	settings, err := c.accept(w, key, options)
	if err != nil {
		return nil, err
	}
	if c.asksHooks() {
		c.ask(w, op, key, settings)
	}
	ctx := w.ctx // w's may end sooner
	if w.Stage == machine.Joining {
		if _, ok := w.joinNow(bound{}); ok {
			return w.leaseNow(), nil
		}
	}
	if cancel := w.boundWait(settings.wait); cancel != nil {
		defer cancel()
	}
	arrived, err := c.enqueue(w, key, bound{})
	if err != nil {
		return nil, err
	}
	returned := false
	defer func() {
		if !returned {
			w.abandonOnPanic()
		}
	}()
	if call := arrived.call; call != nil {
		c.acquire(w.ctx, true, call)
	}
	l, err := w.await()
	if w.Try && errors.Is(err, ErrUnreachable) && ctx.Err() != nil {
		err = waitEnded(ctx) // the reason why there was no answer
	}
	returned = true
	return l, err
}

// abandonOnPanic ends the waiting of a caller that was removed by a panic, of the store or of its
// context. Nobody will unlock a lease that the caller may have got, so this function does.
func (w *waiter) abandonOnPanic() {
	w.leave(ErrOutcomeUnknown)
	if l := w.leaseNow(); l != nil {
		l.UnlockChan(context.Background())
		w.asked().waited(nil)
		return
	}
	c := w.state.shard.client
	c.countFailed(w, w.state.machine.Name, ErrOutcomeUnknown)
	w.asked().waited(ErrOutcomeUnknown)
}

// leaseNow returns the waiter's lease, or nil.
func (w *waiter) leaseNow() *Lease {
	sh := w.state.shard
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return w.lease()
}

// accept checks a caller's arguments, and returns its settings. If the caller runs under a lease of the
// same key, accept finds it.
func (c *Client) accept(w *waiter, key string, options []LockOption) (*lockSettings, error) {
	if err := c.check(w.ctx); err != nil {
		return nil, err
	}
	if err := checkKey(key); err != nil {
		return nil, err
	}
	settings, err := c.lockSettings(c.defaultsOf(w), options)
	if err != nil {
		return nil, err
	}
	if w.Try, err = settings.neverWaits(w.Try); err != nil {
		return nil, err
	}
	if w.ctx.Err() != nil {
		w.verdict = notCounted // it was over before it began
		return nil, waitEnded(w.ctx)
	}
	w.Terms = &settings.Terms
	if w.origin == nil {
		w.origin = c.leaks.origin()
	}
	l := leaseContextOf(w.ctx).leaseOf(c, key, settings.reentry)
	if l == nil {
		return settings, nil
	}
	if err := settings.mayNest(l.core.Terms); err != nil {
		return nil, err
	}
	if settings.reentry && settings.Mode != Permits {
		w.join(l)
	}
	return settings, nil
}

// An arrival is what a waiter finds at its key. The zero arrival is a place in the queue.
type arrival struct {
	call  *machine.Acquire // to be sent; nil if another waiter's request stands for all
	watch *watch           // to be armed; nil if none
}

// enqueue adds a waiter to its key's queue. If the waiter is the first, there is a request to send. The
// bound of a future may need a watch.
func (c *Client) enqueue(w *waiter, key string, b bound) (arrival, error) {
	sh := c.shardOf(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if c.closing.Load() {
		return arrival{}, ErrClosed
	}
	s := sh.stateLocked(key)
	st := s.stepAt(s.awaitTokenLocked())
	w.state = s // before its result may be sent
	g := sh.watchLocked(w, b)
	if err := s.machine.Arrive(&w.Waiter, &st); err != nil {
		sh.unwatchLocked(w) // others have the watch, or nobody has armed it
		s.carryOutLocked(&st)
		w.state = nil
		err = s.publicError(err)
		w.countRefusedLocked(sh, err)
		return arrival{}, err
	}
	w.countLocked(requested)
	call := st.NextAcquire()
	s.carryOutLocked(&st)
	return arrival{call: call, watch: g}, nil
}

// await returns when the waiter has its lease or its error.
func (w *waiter) await() (*Lease, error) {
	if done, l, err := w.checkResult(); done {
		return l, err
	}
	select {
	case <-w.result:
	case <-w.ctx.Done():
		w.leaveFor(waitEnded(w.ctx))
	}
	_, l, err := w.checkResult()
	return l, err
}

// checkResult returns the waiter's result, or makes the channel that will receive it.
func (w *waiter) checkResult() (done bool, l *Lease, err error) {
	sh := w.state.shard
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if w.Stage == machine.Queued {
		w.result = make(chan Result, 1)
		return false, nil, nil
	}
	return true, w.lease(), w.Err
}

// leaveFor withdraws the waiter because its context has ended.
func (w *waiter) leaveFor(reason error) {
	verdict := outcomeOf(reason)
	sh := w.state.shard
	sh.mu.Lock()
	defer sh.mu.Unlock()
	w.endWaitLocked(reason, verdict)
}

// endWaitLocked ends a waiter whose context has ended. Its error also says what it waited for. As what it counts is
// decided before, because the reason may be an error of the application's type.
func (w *waiter) endWaitLocked(reason error, verdict counter) {
	reason = w.whyEndedLocked(reason, verdict)
	if w.Future && w.verdict == 0 {
		w.verdict = verdict
	}
	w.leaveLocked(reason)
}

// whyEndedLocked returns the reason of the end of a wait, with what was in its way.
func (w *waiter) whyEndedLocked(reason error, verdict counter) error {
	if w.Stage != machine.Queued {
		return reason
	}
	s := w.state
	switch obstacle := s.publicError(s.machine.Obstacle(&w.Waiter, watchdog.Refresh())); {
	case obstacle != nil:
		return failure.Join(reason, obstacle)
	case verdict == givenUpTimeout: // who gives up early has learnt nothing of the store
		return failure.Join(reason, errNoAnswer)
	}
	return reason
}

// leave withdraws the waiter with err.
func (w *waiter) leave(err error) {
	sh := w.state.shard
	sh.mu.Lock()
	defer sh.mu.Unlock()
	w.leaveLocked(err)
}

func (w *waiter) leaveLocked(err error) {
	st := w.state.stepNow()
	w.state.machine.Leave(&w.Waiter, err, &st)
	w.state.carryOutLocked(&st)
}

// waitEnded returns the error of a wait whose context has ended, or nil if it has not.
func waitEnded(ctx context.Context) error {
	switch err, cause := ctx.Err(), context.Cause(ctx); {
	case cause == nil:
		return err
	case errors.Is(cause, err): // it says the same, or more
		return cause
	default:
		return failure.Join(err, cause)
	}
}
