// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A Lease is one holding of one key. It is bound to no goroutine: pass it on,
// use it from several at once, unlock it anywhere. It ends once and never
// revives; taking the key again gives another Lease with a larger token.
//
// While a Lease has not ended, no other lease of its key is trusted anywhere,
// under the assumptions that the package comment lists. A resource that checks
// [Lease.Token] is safe even when they fail.
type Lease struct {
	state *keyState
	token int64
	owner string // in the store; Unlock still needs it after a loss

	settings *lockSettings

	// All below is guarded by the shard's mutex.

	first   *Lease  // the lease that this one joined by re-entry; nil if none
	joiner  *Lease  // the last that joined this one and has not unlocked
	earlier *Lease  // the one that joined the same lease before this one
	waiter  *waiter // whose claim is awaited; nil once claimed
	claimed watchdog.Instant
	bound   watchdog.Instant // WithMaxHold; 0: none
	until   watchdog.Instant // the trust deadline when it ended

	err      error           // why it ended
	release  *releaseCall    // what Unlock sent; nil if nothing
	parent   context.Context //nolint:containedctx // its values go into Context
	ctx      *leaseContext
	fnCancel context.CancelCauseFunc // ends the context of WithLock's function

	unlocked  bool // Unlock was called
	uncertain bool // of owner; see attempt
}

func newLease(s *keyState, w *waiter, token int64) Lease {
	return Lease{state: s, token: token, owner: s.owner, uncertain: s.holding.uncertainLocked(), settings: w.settings, parent: w.ctx}
}

// Key returns the key.
func (l *Lease) Key() string { return l.state.key }

// Token returns the fencing token: a number larger than that of every earlier
// lease of this key, in any process; the package comment has the exceptions. Send it with each write; a resource that
// keeps the largest it has seen, and refuses smaller ones, is safe from holders
// that were paused or cut off. It is not a secret and proves nothing. It is 0
// where the store has no tokens ([Features]).
func (l *Lease) Token() int64 { return l.token }

// Context returns a context that ends when the lease does, at the latest at its
// trust deadline, with [Lease.Err] as its cause. It has the values of the
// context the key was asked for with, but neither its end nor its deadline.
// Asking for the same key with it, or with a context made from it, joins this
// lease instead of waiting for it.
func (l *Lease) Context() context.Context {
	sh := l.state.shard
	sh.mu.Lock()
	ctx := l.ctx
	sh.mu.Unlock()
	if ctx != nil {
		return ctx
	}
	// The parent may be the application's code, which takes as long as it likes, or panics.
	ctx = newLeaseContext(context.WithoutCancel(l.parent), l)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if l.ctx == nil {
		l.ctx = ctx
	}
	if l.err != nil {
		l.ctx.cancel(l.err)
	}
	return l.ctx
}

// Done returns a channel that is closed when the lease ends. It is
// Context().Done().
func (l *Lease) Done() <-chan struct{} { return l.Context().Done() }

// Err returns nil while the lease lasts, and then for ever why it ended:
// [ErrUnlocked], an error that is [ErrLost] and says how, or [ErrClosed].
func (l *Lease) Err() error {
	l.checkDeadline(0)
	sh := l.state.shard
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return l.err
}

// Deadline returns the trust deadline: the moment until which the lease lasts
// if nothing renews it. Renewals move it. After the end it is what it was then.
func (l *Lease) Deadline() time.Time {
	sh := l.state.shard
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return time.Now().Add(l.untilLocked().Sub(watchdog.Refresh()))
}

// Valid reports whether the lease has not ended and will last for margin more
// without renewal. Ask before a write that must not be made by a former holder;
// unlike the context it does not depend on any goroutine having run in time.
func (l *Lease) Valid(margin time.Duration) bool { return l.checkDeadline(margin) }

// checkDeadline compares the trust deadline with the true time. If it has passed, the
// lease ends here and now, should the watchdog not have run yet.
func (l *Lease) checkDeadline(margin time.Duration) bool {
	s := l.state
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	if l.err != nil {
		return false
	}
	now := watchdog.Refresh()
	until := l.untilLocked()
	if now >= until {
		s.tickLocked(now)
		return false
	}
	return until.Sub(now) > margin
}

// holdBackLocked is how much longer the key is to be kept back for WithMinHold.
func (l *Lease) holdBackLocked(now watchdog.Instant) time.Duration {
	if l.waiter != nil || l.settings.minHold == 0 {
		return 0
	}
	return max(l.settings.minHold-now.Sub(l.claimed), 0)
}

// untilLocked returns the trust deadline.
func (l *Lease) untilLocked() watchdog.Instant {
	if l.err != nil {
		return l.until
	}
	return l.state.holding.endLocked()
}

// Renew extends the lease to ttl from now, whether or not the watchdog does. It
// never shortens it, and never beyond WithMaxHold. It fails with the lease's
// error if the lease has ended or just turns out lost, and with the store's
// otherwise; then the lease lasts as long as it did before.
func (l *Lease) Renew(ctx context.Context, ttl time.Duration) error {
	if ctx == nil {
		return &Error{"renew", l.Key(), errNilContext}
	}
	if err := checkTTL(ttl); err != nil {
		return &Error{"renew", l.Key(), err}
	}
	call, err := l.renewal(ttl)
	if err != nil {
		return &Error{"renew", l.Key(), err}
	}
	c := l.state.client
	callCtx, cancel := context.WithTimeout(ctx, call.timeout)
	defer cancel()
	call.sent = watchdog.Now()
	reply := c.session.Renew(callCtx, []store.RenewRequest{call.request})[0]
	reply.Err = ourTimeout(ctx, reply.Err)
	l.state.onRenew(call, reply)
	if reply.Err == nil {
		reply.Err = l.Err() // it may have ended while the answer was on its way
	}
	if reply.Err != nil {
		return &Error{"renew", l.Key(), reply.Err}
	}
	return nil
}

// renewal makes the request of Renew.
func (l *Lease) renewal(ttl time.Duration) (*renewCall, error) {
	l.checkDeadline(0)
	s := l.state
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	if l.err != nil {
		return nil, l.err
	}
	call := s.renewalLocked(ttl)
	call.manual = true
	s.holding.long = s.holding.long || call.request.TTL > s.ttl()
	return call, nil
}

// endLocked ends this lease, with its reason.
func (l *Lease) endLocked(reason error) {
	if l.err != nil {
		return
	}
	l.until = l.untilLocked()
	l.err = reason
	if l.ctx != nil {
		l.ctx.cancel(reason)
	}
	if l.fnCancel != nil {
		l.fnCancel(reason)
	}
}

// endAllLocked ends this lease and all that joined it.
func (l *Lease) endAllLocked(reason error) {
	l.endLocked(reason)
	for j := l.joiner; j != nil; j = j.earlier {
		j.endLocked(reason)
	}
}
