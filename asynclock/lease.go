// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"errors"
	"time"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A Lease is one holding of one key. It belongs to no goroutine: pass it on, use it from several
// goroutines at once, unlock it anywhere. A lease ends once and never revives. Taking the key again
// gives another Lease with a larger token.
//
// While a Lease has not ended, no other lease of its key is trusted anywhere, except that readers share a
// key ([Client.RLock]), and so do holders of permits ([Client.Semaphore]). This rests on the assumptions that the package comment lists. A resource that checks [Lease.Token] is safe even when the
// assumptions fail.
type Lease struct {
	_ noCopy
	*leaseCore

	// All below is guarded by the shard's mutex.

	context context.Context //nolint:containedctx // what Context returns; before, whose values that will have
}

// A leaseCore is what the client has of a lease. It refers to no Lease that a caller has, except to its own. That is the
// caller's, too, unless leaks are detected ([WithLeakDetection]).
type leaseCore struct {
	state *keyState
	core  machine.Lease // all but its token and terms is guarded by the shard's mutex
	own   Lease

	// All below is guarded by the shard's mutex.

	release *releaseCall // what Unlock sent; nil if nothing
	more    *leaseMore   // what most leases lack; nil: it has none of it
}

// A leaseMore is what most leases lack.
type leaseMore struct {
	notes    chan struct{}           // has room for whoever writes a note; nil: nobody has yet
	hold     *hold                   // what hooks are told; nil: nothing
	reader   *leaseCore              // that Downgrade made of it; nil if none
	fnCancel context.CancelCauseFunc // ends the context of WithLock's function; nil if there is none
}

func (l *leaseCore) moreLocked() *leaseMore {
	if l.more == nil {
		l.more = new(leaseMore)
	}
	return l.more
}

// A noCopy makes go vet refuse copies of what has it: leak detection does not see the copy of a Lease.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// begin makes l the lease of w.
func (l *leaseCore) begin(w *waiter) *machine.Lease {
	l.state, l.core.Caller = w.state, l
	l.own.leaseCore, l.own.context = l, w.ctx
	if w.state.shard.client.leaks != nil {
		l.own.context = context.Background() // the caller has another
	}
	return &l.core
}

// root returns the lease that l joined, or l itself.
func (l *leaseCore) root() *leaseCore {
	sh := l.state.shard
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return leaseOf(l.core.Root())
}

// leaseOf returns the lease that the machine knows as l.
func leaseOf(l *machine.Lease) *leaseCore {
	return l.Caller.(*leaseCore) //nolint:forcetypeassert // begin has put it there
}

// Key returns the key, in the spelling that stands for all that are one lock with it in the store.
func (l *Lease) Key() string {
	if l.isNone() {
		return ""
	}
	return l.state.machine.Name
}

// Token returns the fencing token: a number larger than that of every earlier lease of this key, in
// any process; the package comment has the exceptions. Send it with each write. A resource can keep
// the largest token it has seen and refuse smaller ones. It is then safe from holders that were
// paused or cut off. Readers between two writers have the same token. It is larger than that of every
// writer before them, and smaller than that of every writer after. Permits have the number of their grant, which
// is larger than that of every earlier grant. Those of one client may have it in common. It fences nobody
// out, because others have permits at the same time. The token is not a secret and proves nothing. It is 0 if the store has no
// tokens ([store.Features]).
func (l *Lease) Token() int64 {
	if l.isNone() {
		return 0
	}
	return l.core.Token
}

// Weight returns how many permits of a [Semaphore] the lease has. It is 0 for any other lease.
func (l *Lease) Weight() int {
	if l.isNone() {
		return 0
	}
	return int(l.core.Weight)
}

// Mode returns how much of the key the lease has: Exclusive, Shared for a reader, or Permits of a
// [Semaphore]. A reader's request that joined a writer's lease has an Exclusive one.
func (l *Lease) Mode() Mode {
	if l.isNone() {
		return Exclusive
	}
	return l.core.Terms.Mode
}

// Context returns a context that ends when the lease ends, at the latest at its trust deadline,
// with [Lease.Err] as its cause. It has the values of the context that the key was requested with,
// but neither its end nor its deadline. A request for the same key with this context, or with one
// made from it, does not wait for this lease: it fails with [ErrReentry], or joins the lease with [WithReentry](true).
func (l *Lease) Context() context.Context {
	if l.isNone() {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errNoLease)
		return ctx
	}
	return l.leaseContext()
}

func (l *Lease) leaseContext() *leaseContext {
	sh := l.state.shard
	if sh.client.leaks == nil {
		l = &l.own // l may be a copy
	}
	sh.mu.Lock()
	made, parent := l.madeLocked(), l.context
	sh.mu.Unlock()
	if made != nil {
		return made
	}
	// The parent may be the application's own type, which may block for long or panic.
	parent = context.WithoutCancel(parent)
	var ctx *leaseContext
	if l == &l.own {
		ctx = newLeaseContext(parent, l)
	} else {
		ctx = l.newWatchedContext(parent)
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if made := l.madeLocked(); made != nil {
		return made
	}
	l.context = ctx
	if l.core.Err != nil {
		ctx.cancel(l.core.Err)
	}
	return ctx
}

// madeLocked returns the lease's context, or nil if nobody has asked for it.
func (l *Lease) madeLocked() *leaseContext {
	if ctx, ok := l.context.(*leaseContext); ok && ctx.lease == l {
		return ctx
	}
	return nil
}

// Done returns a channel that is closed when the lease ends. It is the same as Context().Done().
func (l *Lease) Done() <-chan struct{} { return doneOfCaller(l.Context()) }

// Err returns nil while the lease lasts. Afterwards it always returns the reason of the end:
// [ErrUnlocked], a more specific error that matches [ErrLost], or [ErrClosed].
func (l *Lease) Err() error {
	if l.isNone() {
		return errNoLease
	}
	_, err := l.check(0)
	return err
}

// Deadline returns the trust deadline: the moment at which the lease ends if nothing renews it.
// Renewals move the deadline. After a handoff it is sooner than the TTL says, until the first renewal. After the end, Deadline returns the last value.
func (l *Lease) Deadline() time.Time {
	if l.isNone() {
		return time.Time{}
	}
	sh := l.state.shard
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return time.Now().Add(l.state.machine.Until(&l.core).Sub(watchdog.Refresh()))
}

// Valid reports whether the lease has not ended and will last for margin more without renewal. Call
// it before a write that a former holder must not make. Unlike the context, it does not depend on
// any goroutine having run in time.
func (l *Lease) Valid(margin time.Duration) bool {
	if l.isNone() {
		return false
	}
	lasts, _ := l.check(margin)
	return lasts
}

// check compares the trust deadline with the true time. If the deadline has passed, the lease ends
// here and now, even if the watchdog has not run yet. It reports whether the lease lasts for longer
// than margin, and why it has ended, if it has.
func (l *Lease) check(margin time.Duration) (lasts bool, err error) {
	st := l.state.begin()
	defer l.state.end(&st)
	lasts = l.state.machine.Check(&l.core, margin, &st)
	return lasts, l.core.Err
}

// Renew extends the lease to ttl from now, with or without the watchdog. It never shortens the
// lease, and never extends it beyond WithMaxHold. If the lease has ended, or turns out to be lost,
// the error is the lease's. Otherwise the error is the store's, and the lease lasts as long as
// before.
//
// Leases that share a holding in the store are extended together: those of a client's readers, and of permits that it was
// granted at once. If the process dies, others wait for all of ttl.
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
	err = l.state.shard.client.renewNow(ctx, true, []*machine.Renewal{call})[0]
	if err == nil {
		err = l.Err() // the lease may have ended while the answer was under way
	}
	if err != nil {
		return &Error{"renew", l.Key(), err}
	}
	return nil
}

// renewal returns the request that Renew sends.
func (l *Lease) renewal(ttl time.Duration) (*machine.Renewal, error) {
	st := l.state.begin()
	defer l.state.end(&st)
	return l.state.machine.Renew(&l.core, ttl, &st)
}

// endedLocked tells everybody that the lease has ended.
func (l *leaseCore) endedLocked() {
	reason := l.core.Err
	l.countEndLocked()
	if h := l.holdLocked(); h != nil {
		if h.ends(reason); !errors.Is(reason, ErrUnlocked) { // or else whoever has unlocked it tells
			h.hooks.later(h.tell)
		}
	}
	if ctx := l.own.madeLocked(); ctx != nil {
		ctx.cancel(reason)
	}
	if leaks := l.state.shard.client.leaks; leaks != nil {
		leaks.ended(l)
	}
	if more := l.more; more != nil && more.fnCancel != nil {
		more.fnCancel(reason)
	}
	if l.core.Whole != nil && !l.core.Whole.Over.Load() {
		wholeOf(l.core.Whole).end(&PartError{Key: l.state.machine.Name, Err: reason})
	}
}
