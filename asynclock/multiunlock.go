// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/internal/failure"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A multiRelease gathers the answers to the unlocks of all parts.
type multiRelease struct {
	ttl  time.Duration
	done chan struct{} // closed when there is an answer for each part

	mu      sync.Mutex
	left    int     // parts without an answer
	missing []bool  // by the part's index: it has no answer
	errs    []error // likewise
	answers []chan<- error
}

// Unlock ends the lease and gives each key to its next waiter. All keys go in one call to the store,
// or in one for each of the store's lanes. Unlock may be called from any goroutine and any number of
// times.
//
// The error joins those of the parts. Each is an [*Error] with its key. [Lease.Unlock] says which
// there are, how long Unlock waits, and what becomes of a release without an answer.
func (m *MultiLease) Unlock(ctx context.Context) error {
	if m.isNone() {
		return &Error{Op: "unlock all", Err: errNoLease}
	}
	if ctx == nil {
		ctx = context.Background()
	}
	began := watchdog.Now()
	r, calls, held := m.unlock()
	defer held.tell()
	m.client().releaseAllNow(ctx, calls)
	grace := unlockGrace
	if len(calls) > 0 {
		grace = 0 // they have had it
	}
	return r.await(ctx, m.keys, began.Add(machine.Patience(r.ttl)), grace)
}

// UnlockChan is Unlock without waiting. The channel has room for one, receives exactly one error or
// nil, and is never closed. No goroutine waits for it, except for a part that was unlocked by itself.
// Only the values of ctx are used, not its end.
func (m *MultiLease) UnlockChan(ctx context.Context) <-chan error {
	answer := make(chan error, 1)
	if m.isNone() {
		answer <- &Error{Op: "unlock all", Err: errNoLease}
		return answer
	}
	if ctx == nil {
		ctx = context.Background()
	}
	r, calls, held := m.unlock()
	defer held.tell()
	for _, call := range calls {
		call.ctx = ctx //nolint:fatcontext // each has the caller's
	}
	m.client().releaseAll(calls)
	r.notify(answer)
	return answer
}

func (m *MultiLease) client() *Client { return m.parts[0].state.shard.client }

// unlock ends the lease, once. It returns the releases of its keys that have to be sent. Held, if not nil, is to be told
// then.
func (m *MultiLease) unlock() (r *multiRelease, calls []*releaseCall, held *hold) {
	m.Valid(0) // a part that has expired is lost, even if the watchdog has not run
	n := len(m.parts)
	r = &multiRelease{ttl: m.parts[0].core.Terms.TTL, done: make(chan struct{}), left: n, errs: make([]error, n), missing: slices.Repeat([]bool{true}, n)}
	m.mu.Lock()
	if begun := m.release; begun != nil {
		m.mu.Unlock()
		return begun, nil, nil
	}
	m.release = r
	m.mu.Unlock()
	if m.end(ErrUnlocked) {
		held = m.hold
	}
	calls = make([]*releaseCall, 0, n)
	for i, l := range m.parts {
		call, isNew, _, err := l.unlock()
		answer := func(err error) { r.answer(i, l, err) }
		switch {
		case call == nil:
			answer(err)
		case isNew:
			call.notify = answer
			calls = append(calls, call)
		default: // somebody has unlocked the part by itself
			go func() { // ends with that unlock, which is bounded by the TTL
				if done := call.wait(); done != nil {
					<-done
				}
				answer(call.err)
			}()
		}
	}
	return r, calls, held
}

// answer records the answer to the unlock of one part.
func (r *multiRelease) answer(i int, l *Lease, err error) {
	r.mu.Lock()
	if err != nil {
		r.errs[i] = &Error{"unlock all", l.state.machine.Name, err}
	}
	r.missing[i] = false
	if r.left--; r.left > 0 {
		r.mu.Unlock()
		return
	}
	err = errors.Join(r.errs...)
	answers := r.answers
	r.mu.Unlock()
	close(r.done)
	for _, answer := range answers {
		answer <- err // has room
	}
}

// notify sends the answer to a channel that has room for it.
func (r *multiRelease) notify(answer chan<- error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left > 0 {
		r.answers = append(r.answers, answer)
		return
	}
	answer <- errors.Join(r.errs...)
}

// await returns the answer. It waits until a moment at the latest, and no longer than grace once ctx has
// ended.
func (r *multiRelease) await(ctx context.Context, keys []string, until watchdog.Instant, grace time.Duration) error {
	select {
	case <-r.done: // usually so, even if ctx has ended
		return r.known(keys, nil)
	default:
	}
	limit := time.NewTimer(until.Sub(watchdog.Now()))
	defer limit.Stop()
	cause := failure.Unreachable(ErrOutcomeUnknown)
	for ended := ctx.Done(); ; {
		select {
		case <-r.done:
			return r.known(keys, nil)
		case <-limit.C:
			return r.known(keys, cause)
		case <-ended:
			ended = nil
			cause = failure.Join(ErrOutcomeUnknown, waitEnded(ctx))
			limit.Reset(grace)
		}
	}
}

// known returns the answers that have come, and for the other keys the reason why they have none.
func (r *multiRelease) known(keys []string, reason error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	errs := slices.Clone(r.errs)
	for i, key := range keys {
		if r.missing[i] {
			errs[i] = &Error{"unlock all", key, reason}
		}
	}
	return errors.Join(errs...)
}
