// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/internal/failure"
)

// Unlock ends the lease and gives the key, or the part of it that the lease has, to the next waiters. It may be called from any goroutine
// and any number of times; each call returns the first one's answer. If the lease was joined by
// re-entry, the key is given on when the last of the leases that share it is unlocked.
//
// Unlock gives the key back even if ctx has ended. It waits for the store's answer as long as ctx
// lasts and 50 ms more, but at most ten seconds. A nil ctx counts as context.Background(), because a
// key that is not given back is renewed for ever.
//
// If the lease had ended before, the error is the lease's, which is [ErrLost] or [ErrClosed]. If
// the store says that the key was no longer ours, it is [ErrLost]. If the store can't be reached,
// it is [ErrUnreachable] or [ErrOutcomeUnknown]; the release is then repeated in the background
// until the TTL has ended the holding anyway.
func (l *Lease) Unlock(ctx context.Context) error {
	if l.isNone() {
		return l.unlockError(errNoLease)
	}
	if ctx == nil {
		ctx = context.Background()
	}
	call, isNew, held, err := l.unlock()
	defer held.tell()
	if call == nil {
		return l.unlockError(err)
	}
	if isNew {
		l.state.shard.client.releaseNow(ctx, call)
	}
	done := call.wait()
	if done == nil { // usually so, even if ctx has ended
		return l.unlockError(call.err)
	}
	limit := time.NewTimer(machine.Patience(call.core.TTL))
	defer limit.Stop()
	select {
	case <-done:
		return l.unlockError(call.err)
	case <-limit.C:
		return l.unlockError(failure.Unreachable(ErrOutcomeUnknown))
	case <-ctx.Done():
		return l.unlockError(failure.Join(ErrOutcomeUnknown, waitEnded(ctx)))
	}
}

// UnlockChan is Unlock without waiting. The channel has room for one, receives exactly one error or
// nil, and is never closed. No goroutine waits for it. Only the values of ctx are used, not its
// end.
func (l *Lease) UnlockChan(ctx context.Context) <-chan error {
	answer := make(chan error, 1)
	if l.isNone() {
		answer <- l.unlockError(errNoLease)
		return answer
	}
	if ctx == nil {
		ctx = context.Background()
	}
	call, isNew, held, err := l.unlock()
	defer held.tell()
	switch {
	case call == nil:
		answer <- l.unlockError(err)
	case isNew:
		call.notify = func(err error) { answer <- l.unlockError(err) }
		call.ctx = ctx
		call.queue()
	default: // a second unlock
		done := call.wait()
		if done == nil {
			answer <- l.unlockError(call.err)
			break
		}
		go func() { // ends with the first unlock, which is bounded by the TTL
			<-done
			answer <- l.unlockError(call.err)
		}()
	}
	return answer
}

func (l *Lease) unlockError(err error) error {
	if err == nil {
		return nil
	}
	return &Error{"unlock", l.Key(), err}
}

// unlock ends the lease. It returns the release to wait for, and whether this caller has to send
// it. If there is no release, err is the answer. Held, if not nil, is to be told then.
func (l *Lease) unlock() (call *releaseCall, isNew bool, held *hold, err error) {
	s := l.state
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	st := s.stepNow()
	r, again, err := s.machine.Unlock(&l.core, &st)
	s.carryOutLocked(&st)
	runtime.KeepAlive(l) // a lease is not forgotten while it is being unlocked
	switch {
	case again && l.release == nil && !errors.Is(l.core.Err, ErrUnlocked):
		return nil, false, nil, l.core.Err
	case again:
		return l.release, false, nil, nil
	case errors.Is(l.core.Err, ErrUnlocked):
		held = l.holdLocked()
	}
	if r == nil {
		return nil, false, held, err
	}
	l.release = callOf(r)
	return l.release, true, held, nil
}
