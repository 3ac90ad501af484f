// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/internal/failure"
)

// A gatherer is one request for several keys, until it has all of them or has failed.
//
// Why gatherings never deadlock. A gatherer waits for a key in its queue only while it holds keys
// that sort before that key. Suppose that some gatherings wait for each other in a circle. Each of
// them holds a key that the one before it waits for. Follow the circle: each gatherer waits for a
// larger key than it holds, and the next one holds that key. So the keys that are waited for grow
// from step to step, and can't come back to the first. The leases that the request was made under count
// as held, and checkOrder looks at them with each wait. A try waits for nobody: the store answers it, or
// it fails. A caller that holds one key waits for nothing else.
//
// A try of all keys at once costs one call. It may take larger keys than one that is refused. They
// are given back before that one is waited for. At most maxTries tries are made, because each may
// disturb others in vain. After them the keys are waited for in turn.
type gatherer struct {
	client   *Client
	op       string
	keys     []string // sorted by their bytes, each once
	settings *lockSettings
	outer    *leaseContext   // that the request was made under; nil if none
	values   context.Context //nolint:containedctx // the caller's, without its end
	ctx      context.Context //nolint:containedctx // bounds the waiting
	cancel   context.CancelFunc
	caller   <-chan struct{} // of the context that the caller gave
	try      bool            // never waits
	future   bool            // what it has may be given back before its caller has it

	origin *origin // of the call, if leaks are detected

	held  []*Lease       // of keys[:len(held)]
	lease *MultiLease    // that those held are parts of
	given []*releaseCall // of keys that were given back

	queued atomic.Pointer[waiter] // of the key that is waited for; nil: none is

	place     int64 // in the queue of the first key that was waited for; 0: none
	placeLane int   // of the store that gave it

	waited    bool // for others
	uncounted bool // it is no request: see Stats

	asked      *asked       // nil if there are no hooks
	heldValues *laterValues // likewise
}

// maxTries is how often all the keys that are missing are tried at once.
const maxTries = 2

// gather takes all keys. If it fails, it holds none.
func (a *gatherer) gather() error {
	a.lease = a.newMultiLease()
	returned := false
	defer func() {
		if !returned { // by a panic of the store, or of the caller's context
			a.keep(0)
		}
	}()
	err := a.gatherAll()
	if returned = true; err != nil {
		a.keep(0)
		a.awaitGiven()
	}
	return err
}

func (a *gatherer) gatherAll() error {
	for tries := 0; ; {
		a.dropLost()
		missing := len(a.keys) - len(a.held)
		if missing == 0 {
			if a.allLast() {
				return nil
			}
			continue
		}
		if a.try || tries < maxTries && missing > 1 {
			tries++
			switch key, err := a.tryRest(); {
			case err == nil:
				continue
			case a.try:
				return a.failed(key, err)
			case a.ctx.Err() != nil:
				return a.failed(key, a.waitEndedAt(err))
			case !a.worthWaiting(err):
				return a.failed(key, err)
			}
		}
		if err := a.waitForNext(); err != nil {
			return err
		}
	}
}

// allLast reports whether all held leases last, by the true time.
func (a *gatherer) allLast() bool {
	for _, l := range a.held {
		if lasts, _ := l.check(0); !lasts {
			return false
		}
	}
	return !a.lease.core.Over.Load()
}

// waitEndedAt returns the error of a wait that has ended in a try: the context's, and what the try was
// refused for.
func (a *gatherer) waitEndedAt(err error) error {
	if errors.Is(err, a.ctx.Err()) {
		return err
	}
	return failure.Join(waitEnded(a.ctx), err)
}

// worthWaiting reports whether a key that a try was refused may be had by waiting for it.
func (a *gatherer) worthWaiting(err error) bool {
	return errors.Is(err, ErrHeld) || failure.Transient(err)
}

// waitForNext waits in the queue of the first key that is not held. It returns early if a key that is
// held is lost meanwhile.
func (a *gatherer) waitForNext() error {
	key := a.keys[len(a.held)]
	result := make(chan Result, 1)
	w := a.request(key, result)
	a.queued.Store(w)
	defer a.queued.Store(nil)
	// A lease of the caller may have ended since the last check. It is too late for that only now: the
	// request has not joined a lease that ends from here on.
	if err := a.checkOrder(); err != nil {
		a.withdraw(w)
		return err
	}
	select {
	case <-result:
	case <-a.lease.base.Done():
		a.withdraw(w)
		return nil
	}
	l, err := a.outcome(w)
	if err != nil {
		return a.failed(key, err)
	}
	a.waited = a.waited || w.Way == machine.WayQueued || w.Way == machine.WayLocal
	a.keepPlace(key, w)
	a.lease.adopt(l)
	a.held = append(a.held, l)
	return nil
}

// request makes a waiter for the key, whose result comes by the channel.
func (a *gatherer) request(key string, result chan Result) *waiter {
	w := newWaiter(a.ctx)
	w.verdict, w.Terms, w.Part, w.several, w.result, w.origin = notCounted, &a.settings.Terms, a.future, true, result, a.origin.again()
	if a.join(w, key) {
		result <- Result{w}
		return w
	}
	w.Ticket = a.placeFor(key)
	if err := a.client.enqueueFuture(w, key, w.ctx.Done(), nil); err != nil {
		a.client.refuse(w, key, err)
	}
	return w
}

// keepPlace notes the place that the first wait had, for the waits that follow.
func (a *gatherer) keepPlace(key string, w *waiter) {
	if a.place == 0 {
		a.place, a.placeLane = w.Place, a.client.session.Lane(key)
	}
}

// placeFor returns the place to wait for a key in, or 0 for the last one. The caller that has waited longer
// goes first in each queue, because others wait for the keys that it holds. Places of two lanes may be by the clocks of two
// servers. A limit of the queue does not apply to a place. The default one only guards against accidents, so it
// may be passed over for that, and one that the caller has set may not.
func (a *gatherer) placeFor(key string) int64 {
	limited := a.settings.QueueLimit > 0 && a.settings.QueueLimit != DefaultQueueLimit
	if limited || a.client.features.Sessions || a.client.session.Lane(key) != a.placeLane {
		return 0
	}
	return a.place
}

// join joins the lease of the key that the request was made under. It reports false if there is none.
func (a *gatherer) join(w *waiter, key string) bool {
	l := a.under(key)
	if l == nil {
		return false
	}
	w.join(l)
	_, ok := w.joinNow(bound{})
	return ok
}

// outcome returns what a waiter has got.
func (a *gatherer) outcome(w *waiter) (*Lease, error) {
	if w.state == nil { // refused before it was queued
		var refused *Error
		errors.As(w.Err, &refused)
		return nil, refused.Err
	}
	_, l, err := w.checkResult()
	return l, err
}

// withdraw ends a waiter whose key is not to be waited for now.
func (a *gatherer) withdraw(w *waiter) {
	if w.state == nil {
		return // refused before it was queued
	}
	w.leave(context.Canceled)
	a.giveBack([]*Lease{w.leaseNow()}) // of a waiter that has joined
}

// dropLost gives back everything from the first held key on that was lost. A lease of a larger key
// must not be kept while a smaller key is waited for.
func (a *gatherer) dropLost() {
	for a.lease.core.Over.Load() {
		lost := slices.IndexFunc(a.held, (*Lease).hasEnded)
		if lost < 0 {
			lost = len(a.held) // it was given back in the same try
		}
		a.keep(lost)
		a.lease = a.newMultiLease()
		for _, l := range a.held {
			a.lease.adopt(l)
		}
	}
}

// keep gives back all but the first n of the held leases.
func (a *gatherer) keep(n int) {
	a.giveBack(a.held[n:])
	a.held = a.held[:n:n]
}

// awaitGiven waits until the store has confirmed what was given back, as Unlock does. Otherwise the
// caller's next request for such a key could arrive before that.
func (a *gatherer) awaitGiven() {
	limit := time.NewTimer(machine.Patience(a.settings.TTL))
	defer limit.Stop()
	ended := a.ctx.Done()
	for _, call := range a.given {
		for done := call.wait(); done != nil; {
			select {
			case <-done:
				done = nil
			case <-ended:
				ended = nil
				limit.Reset(unlockGrace)
			case <-limit.C:
				return
			}
		}
	}
}

// giveBack unlocks leases that no caller has had, in the background. Nil stands for none.
func (a *gatherer) giveBack(leases []*Lease) {
	var calls []*releaseCall
	for _, l := range leases {
		if l == nil {
			continue
		}
		l.leaveWhole()
		if call, _, _, _ := l.unlock(); call != nil { // nobody else has unlocked it
			calls = append(calls, call)
		}
	}
	a.client.releaseAll(calls)
	a.given = append(a.given, calls...)
}
