// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// MaxKeys is the largest number of keys that one call of [Client.LockAll] may take.
const MaxKeys = 256

// LockAll takes all keys, or none: when it returns an error, nothing is held. What it had by then it
// has given back, and has waited for that as [Lease.Unlock] does. Only a grant that came in the last
// moment goes back in the background. LockAll waits for the keys as long as ctx lasts, or as long as
// [WithWait] says. Keys that are listed twice count once, also in two spellings that are one lock in the store. At most
// [MaxKeys] keys are allowed, and at least one.
//
// Calls of LockAll never deadlock each other, in whatever order they list the keys. Neither do they
// deadlock callers that hold one key at a time. A caller that holds a key and requests another by
// itself may deadlock, as with any lock. So may a caller that calls LockAll under a lease of a key
// that it does not list.
//
// If ctx was made under a lease of one of the keys, LockAll fails with [ErrReentry], or joins that lease with
// [WithReentry](true), as [Client.Lock] does. Then all keys that are not held have to sort after those that are held. Otherwise the error is
// [ErrLockOrder], at once, or as soon as the lease of a smaller key ends. Keys sort by their bytes.
//
// Keys that are had early are renewed while the others are waited for, also with [WithRenewal](false). For a moment LockAll may hold
// some of the keys and give them back, so another's TryLock may be refused. [WithMaxHold] and
// [WithMinHold] count from the return of LockAll. WithMaxHold of a key that is joined counts from its
// first lease. [WithRetention] and [WithQueueLimit] apply to each key.
//
// Errors are those of Lock, as an [*Error] with the key that failed.
func (c *Client) LockAll(ctx context.Context, keys []string, options ...LockOption) (*MultiLease, error) {
	a := &gatherer{client: c, ctx: ctx, op: "lock all"}
	return a.lockAll(keys, options)
}

// TryLockAll takes all keys if they are free at once, as [Client.TryLock] would find them. Otherwise
// it takes none, and the error is that of the first key that could not be had: usually [ErrHeld], as
// a [*HeldError]. Until TryLockAll returns, it may hold some of the keys. It never waits for a key,
// so with [WithReentry](true) it may be called under a lease of any of them and never returns [ErrLockOrder].
func (c *Client) TryLockAll(ctx context.Context, keys []string, options ...LockOption) (*MultiLease, error) {
	a := &gatherer{client: c, ctx: ctx, op: "try lock all", try: true}
	return a.lockAll(keys, options)
}

// lockAll implements LockAll and TryLockAll.
func (a *gatherer) lockAll(keys []string, options []LockOption) (*MultiLease, error) {
	err := a.accept(keys, options)
	if a.countRequested(); err != nil {
		a.countFailed(err)
		return nil, err
	}
	defer a.cancel()
	err = ErrOutcomeUnknown // unless gather returns
	defer func() {
		if err != nil {
			a.countFailed(err)
			a.asked.waited(err)
		}
	}()
	if err = a.gather(); err != nil {
		return nil, err
	}
	a.begin()
	if a.asked != nil {
		a.asked.beginAll(a)
	}
	return a.lease, nil
}

// accept checks a caller's arguments. It asks the caller's context all that has to be asked, because
// the context may be the application's own type, which may panic. Nothing is held yet.
func (a *gatherer) accept(keys []string, options []LockOption) (err error) {
	if err := a.client.check(a.ctx); err != nil {
		return a.failed("", err)
	}
	for _, key := range keys {
		if err := checkKey(key); err != nil {
			return a.failed(key, err)
		}
	}
	a.keys = slices.Clone(keys)
	for i, key := range a.keys {
		a.keys[i] = a.client.spell(key)
	}
	slices.Sort(a.keys)
	a.keys = slices.Compact(a.keys)
	if n := len(a.keys); n == 0 || n > MaxKeys {
		return a.failed("", fmt.Errorf("%w: %d keys, from 1 to %d are allowed", ErrInvalidOption, n, MaxKeys))
	}
	if a.settings, err = a.client.lockSettings(&a.client.settings.lock, options); err != nil {
		return a.failed("", err)
	}
	if a.try, err = a.settings.neverWaits(a.try); err != nil {
		return a.failed("", err)
	}
	if a.ctx.Err() != nil {
		a.uncounted = true // it was over before it began
		return a.failed(a.keys[0], waitEnded(a.ctx))
	}
	a.outer = leaseContextOf(a.ctx)
	if err := a.checkOrder(); err != nil {
		return err
	}
	a.ask()
	a.values = context.WithoutCancel(a.ctx)
	if a.asked != nil {
		a.heldValues = &laterValues{Context: a.values}
		a.values = a.heldValues
	}
	a.origin = a.client.leaks.origin()
	a.bound()
	return nil
}

// checkOrder refuses a request that may not be made under the leases that the caller has of its keys, and
// one that would wait for a key while it holds a larger one.
func (a *gatherer) checkOrder() error {
	missing := ""
	for _, key := range a.keys {
		l := a.under(key)
		if l == nil {
			missing = cmp.Or(missing, key) // no key is empty
			continue
		}
		if err := a.settings.mayNest(l.core.Terms); err != nil {
			return a.failed(key, err)
		}
		if missing != "" && !a.try {
			return a.failed(missing, ErrLockOrder)
		}
	}
	return nil
}

// under returns the lease of the key that the request was made under, or nil.
func (a *gatherer) under(key string) *Lease {
	return a.outer.leaseOf(a.client, key, a.settings.reentry)
}

// bound makes a context of our own that ends when the waiting has to end.
func (a *gatherer) bound() {
	a.caller = a.ctx.Done()
	if wait := a.settings.wait; !a.try && wait >= 0 {
		a.ctx, a.cancel = context.WithTimeoutCause(a.ctx, wait, waitedError(wait))
		return
	}
	a.ctx, a.cancel = context.WithCancel(a.ctx)
}

// failed returns the error of the whole request.
func (a *gatherer) failed(key string, err error) error { return &Error{a.op, key, err} }
