// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A Lease is one holding of one key. It belongs to no goroutine: pass it on, use it from several
// goroutines at once, unlock it anywhere. A lease ends once and never revives. Taking the key again
// gives another Lease with a larger token.
//
// While a Lease has not ended, no other lease of its key is trusted anywhere, under the assumptions
// that the package comment lists. A resource that checks [Lease.Token] is safe even when the
// assumptions fail.
type Lease struct {
	_ noCopy

	state *keyState
	token int64
	owner string // in the store; Unlock still needs it after a loss

	settings *lockSettings

	// All below is guarded by the shard's mutex.

	first   *Lease  // the lease that this one joined by re-entry; nil if none
	joiner  *Lease  // the last lease that joined this one and is not unlocked yet
	earlier *Lease  // the lease that joined the same lease before this one
	joiners *waiter // the last future that may still join this lease; the rest follow by behind
	waiter  *waiter // the waiter that has to claim it; nil once claimed
	claimed watchdog.Instant
	bound   watchdog.Instant // the end by WithMaxHold; 0: none
	until   watchdog.Instant // the trust deadline at the time of the end

	err      error           // why it ended
	release  *releaseCall    // what Unlock sent; nil if nothing
	parent   context.Context //nolint:containedctx // its values go into Context
	ctx      *leaseContext
	fnCancel context.CancelCauseFunc // ends the context of WithLock's function
	whole    *MultiLease             // that this lease is a part of; nil if none

	unlocked  bool // Unlock was called
	uncertain bool // of owner; see attempt
}

// A noCopy makes go vet refuse copies of what has it: a copy of a Lease would be unlocked by itself.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// beginLocked makes l the lease of a waiter.
func (l *Lease) beginLocked(s *keyState, w *waiter, token int64) {
	l.state, l.token, l.owner, l.uncertain = s, token, s.owner, s.holding.uncertainLocked()
	l.settings, l.parent = w.settings, w.ctx
}

// Key returns the key.
func (l *Lease) Key() string {
	if l.isNone() {
		return ""
	}
	return l.state.key
}

// Token returns the fencing token: a number larger than that of every earlier lease of this key, in
// any process; the package comment has the exceptions. Send it with each write. A resource can keep
// the largest token it has seen and refuse smaller ones. It is then safe from holders that were
// paused or cut off. The token is not a secret and proves nothing. It is 0 if the store has no
// tokens ([Features]).
func (l *Lease) Token() int64 {
	if l.isNone() {
		return 0
	}
	return l.token
}

// Context returns a context that ends when the lease ends, at the latest at its trust deadline,
// with [Lease.Err] as its cause. It has the values of the context that the key was requested with,
// but neither its end nor its deadline. A request for the same key with this context, or with one
// made from it, joins this lease instead of waiting for it.
func (l *Lease) Context() context.Context {
	if l.isNone() {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errNoLease)
		return ctx
	}
	sh := l.state.shard
	sh.mu.Lock()
	ctx := l.ctx
	sh.mu.Unlock()
	if ctx != nil {
		return ctx
	}
	// The parent may be the application's own type, which may block for long or panic.
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

// Done returns a channel that is closed when the lease ends. It is the same as Context().Done().
func (l *Lease) Done() <-chan struct{} { return l.Context().Done() }

// Err returns nil while the lease lasts. Afterwards it always returns the reason of the end:
// [ErrUnlocked], a more specific error that matches [ErrLost], or [ErrClosed].
func (l *Lease) Err() error {
	if l.isNone() {
		return errNoLease
	}
	l.checkDeadline(0)
	sh := l.state.shard
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return l.err
}

// Deadline returns the trust deadline: the moment at which the lease ends if nothing renews it.
// Renewals move the deadline. After the end, Deadline returns the last value.
func (l *Lease) Deadline() time.Time {
	if l.isNone() {
		return time.Time{}
	}
	sh := l.state.shard
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return time.Now().Add(l.untilLocked().Sub(watchdog.Refresh()))
}

// Valid reports whether the lease has not ended and will last for margin more without renewal. Call
// it before a write that a former holder must not make. Unlike the context, it does not depend on
// any goroutine having run in time.
func (l *Lease) Valid(margin time.Duration) bool { return !l.isNone() && l.checkDeadline(margin) }

// checkDeadline compares the trust deadline with the true time. If the deadline has passed, the
// lease ends here and now, even if the watchdog has not run yet.
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

// holdBackLocked returns for how much longer WithMinHold holds the key back.
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

// Renew extends the lease to ttl from now, with or without the watchdog. It never shortens the
// lease, and never extends it beyond WithMaxHold. If the lease has ended, or turns out to be lost,
// the error is the lease's. Otherwise the error is the store's, and the lease lasts as long as
// before.
func (l *Lease) Renew(ctx context.Context, ttl time.Duration) error {
	if l.isNone() {
		return &Error{Op: "renew", Err: errNoLease}
	}
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
		reply.Err = l.Err() // the lease may have ended while the answer was under way
	}
	if reply.Err != nil {
		return &Error{"renew", l.Key(), reply.Err}
	}
	return nil
}

// renewal returns the request that Renew sends.
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
	call.timeout = min(s.holding.deadline.Sub(watchdog.Now()), patience(s.settings.ttl)) // there is only this attempt
	s.holding.long = s.holding.long || call.request.TTL > s.ttl()
	return call, nil
}

// endLocked ends this lease with a reason.
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
	if l.whole != nil {
		l.whole.end(&PartError{Key: l.state.key, Err: reason})
	}
}

// endAllLocked ends this lease and all leases that joined it.
func (l *Lease) endAllLocked(reason error) {
	l.endLocked(reason)
	for j := l.joiner; j != nil; j = j.earlier {
		j.endLocked(reason)
	}
}
