// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"errors"
	"slices"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
)

// A keyTry is the try of one key, made as TryLock makes it. The caller itself sends the requests for all
// keys, and is there when they are granted.
type keyTry struct {
	waiter waiter
	key    string

	call  *machine.Acquire // under way; nil: there was nothing to send
	over  bool             // lease or err is the answer
	lease *Lease
	err   error
}

// tryRest tries all keys that are not held, at once. It keeps those before the first that was
// refused, and gives the others back. It returns that key and the reason. But a reason that waiting
// can't mend comes first, unless the request never waits.
func (a *gatherer) tryRest() (refused string, err error) {
	tries := a.tryAll(a.keys[len(a.held):])
	n := slices.IndexFunc(tries, func(t keyTry) bool { return t.err != nil })
	for i := range tries {
		if l := tries[i].lease; n < 0 || i < n {
			a.held = append(a.held, l)
		}
	}
	if n < 0 {
		return "", nil
	}
	a.waited = a.waited || errors.Is(tries[n].err, ErrHeld)
	a.giveBack(leasesOf(tries[n:]))
	for i := n; i < len(tries) && !a.try; i++ {
		if err := tries[i].err; err != nil && !a.worthWaiting(err) {
			return tries[i].key, err
		}
	}
	return tries[n].key, tries[n].err
}

// leasesOf returns the leases that tries have led to.
func leasesOf(tries []keyTry) []*Lease {
	leases := make([]*Lease, 0, len(tries))
	for i := range tries {
		leases = append(leases, tries[i].lease)
	}
	return leases
}

// tryAll tries keys until each has an answer.
func (a *gatherer) tryAll(keys []string) []keyTry {
	tries := make([]keyTry, len(keys))
	returned := false
	defer func() {
		for i := range tries {
			if !returned { // by a panic of the store, or of the caller's context
				a.withdraw(&tries[i].waiter)
			}
		}
	}()
	for i, key := range keys {
		t := &tries[i]
		t.key = key
		w := t.waiter.begin(a.ctx)
		w.verdict, w.Terms, w.Try, w.Part, w.several, w.origin = notCounted, &a.settings.Terms, true, a.future, true, a.origin.again()
		if a.join(w, key) {
			a.answer(t)
		}
	}
	a.requestAll(tries)
	returned = true
	return tries
}

// requestAll makes the requests for the keys without an answer, and waits for the answers.
func (a *gatherer) requestAll(tries []keyTry) {
	calls := make([]*machine.Acquire, 0, len(tries))
	for i := range tries {
		t := &tries[i]
		if t.over {
			continue
		}
		arrived, err := a.client.enqueue(&t.waiter, t.key, bound{})
		t.call = arrived.call
		if t.err, t.over = err, err != nil; t.call != nil {
			calls = append(calls, t.call)
		}
	}
	a.client.acquireAll(a.ctx, !a.future, calls)
	for i := range tries {
		if t := &tries[i]; !t.over && t.call != nil {
			a.answer(t)
		}
	}
	for i := range tries { // after those that are held, which are renewed from then on
		if t := &tries[i]; !t.over {
			a.answer(t)
		}
	}
}

// answer waits for the answer to a try whose request was sent, and makes its lease a part of the whole.
func (a *gatherer) answer(t *keyTry) {
	t.lease, t.err = t.waiter.await()
	if t.over = true; t.err == nil {
		a.lease.adopt(t.lease)
		return
	}
	if errors.Is(t.err, ErrUnreachable) && a.ctx.Err() != nil {
		t.err = waitEnded(a.ctx) // the reason why there was no answer
	}
}
