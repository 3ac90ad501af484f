// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"errors"
	"time"

	"github.com/asynclock/asynclock-go/watchdog"
)

// Lock takes the key and waits for it as long as ctx lasts. Ctx bounds only the waiting: once Lock
// has returned, the lease does not depend on ctx.
//
// If the store has a queue, clients are served in the order in which they queued. The waiters of
// one client are served in the order in which they came. If ctx was made under a lease of the same
// key that still lasts (see [Lease.Context]), the new lease joins it at once, whatever the options.
//
// Errors: ctx's own and its cause, [ErrQueueFull], [ErrUnreachable] when the store has not answered
// for a third of the TTL (at least one second, at most ten), [ErrTooSlow] when its answers came too
// late for as long, [ErrClosed], [ErrInvalidKey], [ErrInvalidOption], [ErrForeignData], [ErrDenied]. After an error the client holds nothing. If a lost
// request took the key, the client gives it back in the background.
func (c *Client) Lock(ctx context.Context, key string, options ...LockOption) (*Lease, error) {
	l, err := c.lock(ctx, key, false, options)
	if err != nil {
		return nil, &Error{"lock", key, err}
	}
	return l, nil
}

// TryLock takes the key if it is free at once: nobody holds it, and nobody is ahead in its queue.
// Otherwise the error is [ErrHeld], as a [*HeldError] that names the holder. TryLock never queues.
// A store that cannot be reached is never reported as [ErrHeld]. If another caller's first request
// for the key is under way in this client, TryLock waits for its answer. The other errors are those
// of [Client.Lock].
//
// If the holder's client retains keys ([WithRetention]), possibly nobody uses this one. The
// holder's client is then requested to give it back, and TryLock tries once more: after twice the
// time of the first answer, but at least 5 ms.
func (c *Client) TryLock(ctx context.Context, key string, options ...LockOption) (*Lease, error) {
	l, err := c.lock(ctx, key, true, options)
	if err != nil {
		return nil, &Error{"try lock", key, err}
	}
	return l, nil
}

// LockChan is Lock as a future. The channel has room for one [Result], always receives exactly one,
// and is never closed. Nobody has to receive from it. The caller owns the lease once it has called
// [Result.Lease]. Before that, the lease is given back if ctx ends, the client closes or the trust
// deadline passes.
//
// No goroutine waits for the lease (unless the type of ctx is not from package context), so
// thousands may be pending. In a loop, call LockChan once before the select and set the variable to
// nil after the receive.
func (c *Client) LockChan(ctx context.Context, key string, options ...LockOption) <-chan Result {
	result := make(chan Result, 1)
	w := &waiter{ctx: ctx, future: true, result: result}
	if err := c.enqueueFuture(w, key, options); err != nil {
		w.err = &Error{"lock", key, err}
		w.stage = ended
		result <- Result{w}
	}
	return result
}

// lock implements Lock and TryLock.
func (c *Client) lock(ctx context.Context, key string, try bool, options []LockOption) (*Lease, error) {
	w := &waiter{ctx: ctx, try: try}
	if err := c.admit(w, key, options); err != nil {
		return nil, err
	}
	if w.stage == joining {
		if l, err := w.claim(); err == nil {
			return l, nil
		}
		w.stage, w.err = queued, nil // the lease to join ended just now: wait like anyone else
	}
	call, _, err := c.enqueue(w, key, nil)
	for w.verdict != nil { // of a request that is under way
		if err = w.verdict.await(ctx); err != nil {
			return nil, err
		}
		call, _, err = c.enqueue(w, key, nil)
	}
	if err != nil {
		return nil, err
	}
	returned := false
	defer func() {
		if !returned {
			w.abandonOnPanic()
		}
	}()
	if call != nil {
		call.first = try
		c.acquire(ctx, call)
		if call.again {
			w.tryAgain(call)
		}
	}
	l, err := w.await()
	if try && errors.Is(err, ErrUnreachable) && ctx.Err() != nil {
		err = waitEnded(ctx) // the reason why there was no answer
	}
	returned = true
	return l, err
}

// abandonOnPanic ends the waiting of a caller that was removed by a panic, of the store or of its
// context. Nobody will unlock a lease that the caller may have got, so this function does.
func (w *waiter) abandonOnPanic() {
	s := w.state
	s.shard.mu.Lock()
	s.removeWaiterLocked(w, ErrOutcomeUnknown)
	l := w.lease
	s.shard.mu.Unlock()
	if l != nil {
		l.UnlockChan(context.Background())
	}
}

// tryAgain is the second try of a TryLock after a refusal. The holder's client may only retain the
// key, and will have given it back by then. The caller itself makes the second try, because a
// watchdog may run late.
func (w *waiter) tryAgain(first *acquireCall) {
	pause := time.NewTimer(secondTry(watchdog.Now().Sub(first.sent), first.timeout))
	defer pause.Stop()
	if done, _, _ := w.checkResult(); done {
		return // the client was closed
	}
	select {
	case <-w.result: // the client was closed
	case <-w.ctx.Done():
	case <-pause.C:
		if call := w.secondRequest(); call != nil {
			w.state.client.acquire(w.ctx, call)
		}
	}
}

// secondRequest returns another request if the waiter is still the first. It returns nil if the
// waiter has stopped waiting, or if a request is under way.
func (w *waiter) secondRequest() *acquireCall {
	s := w.state
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	if w.stage != queued || s.attempt.inFlight > 0 {
		return nil
	}
	return s.requestLocked()
}

// admit checks a caller's arguments. If the caller runs under a lease of the same key, admit finds
// it.
func (c *Client) admit(w *waiter, key string, options []LockOption) (err error) {
	if w.ctx == nil {
		return errNilContext
	}
	if err := checkKey(key); err != nil {
		return err
	}
	if w.settings, err = c.lockSettings(options); err != nil {
		return err
	}
	if w.ctx.Err() != nil {
		return waitEnded(w.ctx)
	}
	if l := c.under(w.ctx, key); l != nil {
		w.state, w.lease, w.stage = l.state, l, joining
	}
	return nil
}

// enqueue adds a waiter to its key's queue. If the waiter is the first, enqueue returns the request
// to send. The waiting of a future ends when done is closed; if that needs a new watch, enqueue
// returns the watch to arm.
func (c *Client) enqueue(w *waiter, key string, done <-chan struct{}) (*acquireCall, *watch, error) {
	sh := c.shardOf(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	w.verdict = nil
	if c.closing.Load() {
		return nil, nil, ErrClosed
	}
	s, isNew := sh.stateLocked(c, key)
	retained := !isNew && s.retainedLocked()
	switch {
	case isNew, retained:
	case w.try:
		return nil, nil, s.refuseLocallyLocked(w)
	case s.waiters.n >= w.settings.queueLimit:
		return nil, nil, ErrQueueFull
	}
	w.state, w.since = s, watchdog.Now()
	s.waiters.push(w)
	g := sh.watchLocked(w, done)
	switch {
	case isNew:
		return s.contendLocked(), g, nil
	case retained:
		s.retakeLocked()
	case s.attempt != nil:
		s.joinTroubleLocked(w)
	}
	return nil, g, nil
}

// enqueueFuture is lock for LockChan: it does not wait, and watches ctx.
func (c *Client) enqueueFuture(w *waiter, key string, options []LockOption) error {
	if err := c.admit(w, key, options); err != nil {
		return err
	}
	if w.stage == joining {
		w.sendLocked() // nobody else knows this waiter
		return nil
	}
	call, g, err := c.enqueue(w, key, w.ctx.Done())
	if err != nil {
		return err
	}
	if call != nil {
		c.send(call)
	}
	if g != nil {
		w.state.shard.arm(w.ctx, g)
	}
	return nil
}

// refuseLocallyLocked returns the error for a TryLock that is refused because of this client itself.
// If the client does not know yet whether anybody holds the key, it gives w a verdict to wait for
// instead.
func (s *keyState) refuseLocallyLocked(w *waiter) error {
	a := s.attempt
	if a == nil {
		return &HeldError{Key: s.key, Holder: s.settings.holder, Token: s.holding.last, Remaining: s.remainingLocked()}
	}
	left := a.grace.Sub(watchdog.Now())
	switch {
	case a.trouble != nil && !a.trouble.queued:
		return unreachable(a.trouble.err) // the key may be free
	case left > 0:
		return &GraceError{Remaining: left}
	case a.told:
		return &HeldError{Key: s.key, Remaining: -1}
	}
	w.verdict = a.verdictLocked()
	return nil
}

// await returns when the waiter has its lease or its error.
func (w *waiter) await() (*Lease, error) {
	if done, l, err := w.checkResult(); done {
		return l, err
	}
	select {
	case <-w.result:
	case <-w.ctx.Done():
		w.leave()
	}
	_, l, err := w.checkResult()
	return l, err
}

// checkResult returns the waiter's result, or makes the channel that will receive it.
func (w *waiter) checkResult() (done bool, l *Lease, err error) {
	sh := w.state.shard
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if w.stage == queued {
		w.result = make(chan Result, 1)
		return false, nil, nil
	}
	return true, w.lease, w.err
}

// leave withdraws the waiter because its context has ended. An unclaimed grant goes to the next
// waiter. A claimed lease stays the caller's.
func (w *waiter) leave() {
	reason := waitEnded(w.ctx)
	s := w.state
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	s.removeWaiterLocked(w, reason)
}

// removeWaiterLocked ends one waiter with err, at any stage.
func (s *keyState) removeWaiterLocked(w *waiter, err error) {
	switch w.stage {
	case granted:
		s.revokeUnclaimedLocked(err)
	case queued:
		wasFirst := s.waiters.first == w
		s.waiters.remove(w)
		w.failLocked(err)
		if wasFirst {
			s.headChangedLocked()
		}
	case joining, claimed, ended:
	}
}

// headChangedLocked adapts the attempt to the remaining waiters. It ends the attempt if nobody
// waits, and begins a new one if the first waiter has other terms.
func (s *keyState) headChangedLocked() {
	if s.attempt == nil {
		return
	}
	if w := s.waiters.first; w != nil && *w.settings == *s.settings && !s.attempt.try {
		if s.attempt.trouble != nil || s.attempt.again { // perhaps the waiter that left gave up
			s.requestAgainLocked()
		}
		return
	}
	t := s.attempt.trouble
	s.abandonLocked()
	s.contendAfterLocked(t)
}

// waitEnded returns the error of a wait whose context has ended, or nil if it has not.
func waitEnded(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || cause == err { //nolint:errorlint // is it the very same value?
		return err
	}
	return &joined{err, cause}
}
