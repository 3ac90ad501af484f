// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"errors"

	"github.com/asynclock/asynclock-go/watchdog"
)

// Lock takes the key and waits for it as long as ctx lasts, or as long as [WithWait] says. Both bound
// only the waiting: once Lock has returned, the lease does not depend on ctx.
//
// If the store has a queue, clients are served in the order in which they queued. The waiters of
// one client are served in the order in which they came. If ctx was made under a lease of the same
// key that still lasts (see [Lease.Context]), the new lease joins it at once, except with
// [WithReentry](false). Options that differ from those of that lease are refused with
// [ErrInvalidOption].
//
// Errors: ctx's own and its cause, [ErrQueueFull], [ErrUnreachable] when the store has not answered
// for a third of the TTL (at least one second, at most ten), [ErrTooSlow] when its answers came too
// late for as long, [ErrClosed], [ErrInvalidKey], [ErrInvalidOption], [ErrForeignData], [ErrDenied].
// When ctx ends the wait, the error also matches what the call waited for, as far as the client
// knows: [ErrHeld] as a [*HeldError], [ErrGrace] or ErrUnreachable. After an error the client holds
// nothing. If a lost request took the key, the client gives it back in the background.
func (c *Client) Lock(ctx context.Context, key string, options ...LockOption) (*Lease, error) {
	l, err := c.lock(ctx, key, false, options)
	if err != nil {
		return nil, &Error{"lock", key, err}
	}
	return l, nil
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
	if cancel := w.boundWait(); cancel != nil {
		defer cancel()
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
		call.first = w.try
		c.acquire(w.ctx, call)
		if call.again {
			w.tryAgain(call)
		}
	}
	l, err := w.await()
	if w.try && errors.Is(err, ErrUnreachable) && ctx.Err() != nil {
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

// admit checks a caller's arguments. If the caller runs under a lease of the same key, admit finds
// it.
func (c *Client) admit(w *waiter, key string, options []LockOption) (err error) {
	if err := c.check(w.ctx); err != nil {
		return err
	}
	if err := checkKey(key); err != nil {
		return err
	}
	if w.settings, err = c.lockSettings(options); err != nil {
		return err
	}
	if err := w.checkWait(); err != nil {
		return err
	}
	if w.ctx.Err() != nil {
		return waitEnded(w.ctx)
	}
	if !w.settings.reentry {
		return nil
	}
	if l := c.under(w.ctx, key); l != nil {
		w.state, w.lease, w.stage = l.state, l, joining
		return w.settings.canJoin(l.settings)
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

// obstacleLocked returns what keeps this client's waiters from the key, as far as the client knows. It
// returns nil if the store has not answered yet.
func (s *keyState) obstacleLocked() error {
	a := s.attempt
	if a == nil {
		return &HeldError{Key: s.key, Holder: s.settings.holder, Token: s.holding.last, Remaining: s.remainingLocked()}
	}
	now := watchdog.Now()
	left := a.grace.Sub(now)
	switch {
	case a.trouble != nil && !a.trouble.queued:
		return unreachable(a.trouble.err) // the key may be free
	case left > 0:
		return &GraceError{Remaining: left}
	case a.blocker != nil:
		held := *a.blocker // the caller may change it
		if held.Remaining > 0 {
			held.Remaining = max(held.Remaining-now.Sub(a.base), 0)
		}
		return &held
	}
	return nil
}

// leave withdraws the waiter because its context has ended. An unclaimed grant goes to the next
// waiter. A claimed lease stays the caller's.
func (w *waiter) leave() {
	reason := waitEnded(w.ctx)
	s := w.state
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	s.endWaitLocked(w, reason)
}

// endWaitLocked ends a waiter whose context has ended. Its error also says what it waited for.
func (s *keyState) endWaitLocked(w *waiter, reason error) {
	if w.stage == queued {
		if obstacle := s.obstacleLocked(); obstacle != nil {
			reason = &joined{reason, obstacle}
		}
	}
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
	case joining:
		w.stopJoiningLocked()
		w.failLocked(err)
	case claimed, ended:
	}
}

// headChangedLocked adapts the attempt to the remaining waiters. It ends the attempt if nobody
// waits, and begins a new one if the first waiter has other terms.
func (s *keyState) headChangedLocked() {
	if s.attempt == nil {
		return
	}
	if w := s.waiters.first; w != nil && w.settings.terms == s.settings.terms && !s.attempt.try {
		if s.attempt.again { // the waiter that left gave up; in trouble, the next request has its time
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
