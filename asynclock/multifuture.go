// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/watchdog"
)

// LockAllChan is [Client.LockAll] as a future. The channel has room for one [MultiResult], always
// receives exactly one, and is never closed. Nobody has to receive from it. The caller owns the lease
// once it has called [MultiResult.Lease]. Before that, all keys are given back if ctx ends, the client
// closes or the earliest trust deadline passes.
//
// A goroutine waits for each call, unlike for [Client.LockChan]. It ends with the claim, or when the
// keys are given back. Keys that are had early are renewed while others are waited for, for as long
// as ctx lasts. So a caller that loses interest has to end ctx. With [WithReentry](true) a lease that ctx was made
// under is joined at once, not with the claim.
func (c *Client) LockAllChan(ctx context.Context, keys []string, options ...LockOption) <-chan MultiResult {
	results := make(chan MultiResult, 1)
	f := &multiFuture{gatherer: gatherer{client: c, ctx: ctx, op: "lock all"}, settled: make(chan struct{})}
	if err := f.admit(keys, options); err != nil {
		f.answered, f.err = true, err
		results <- MultiResult{f}
		return results
	}
	c.enter()
	// The goroutine ends when the caller claims the lease, its context ends, the client closes, a part
	// is lost or the earliest trust deadline passes. Close waits for it, because it has entered.
	go func() {
		defer c.leave()
		defer f.cancel()
		f.run(results)
	}()
	return results
}

// A MultiResult is the value that the channel of [Client.LockAllChan] yields. The zero MultiResult is
// none.
type MultiResult struct {
	future *multiFuture
}

// Keys returns the keys that were requested, sorted by their bytes, each once; nil if the request was
// refused for its keys.
func (r MultiResult) Keys() []string {
	if r.future == nil {
		return nil
	}
	return slices.Clone(r.future.keys)
}

// Lease claims the lease. From then on the caller owns the lease and has to unlock it, and the
// watchdog renews it. The error is that of [Client.LockAll], or the reason why the keys were given
// back before this call: ctx's error, [ErrClosed], [ErrNotClaimed] or [ErrLost]. Every call returns
// the same answer.
func (r MultiResult) Lease() (*MultiLease, error) {
	f := r.future
	if f == nil {
		return nil, fmt.Errorf("%w: the zero MultiResult", ErrInvalidOption)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.answered {
		f.claimLocked()
	}
	if f.err != nil {
		return nil, f.err
	}
	return f.lease, nil
}

// A multiFuture is a gatherer whose lease has to be claimed.
type multiFuture struct {
	gatherer

	settled chan struct{} // closed when the answer is known

	mu       sync.Mutex // shards are locked under it
	offered  []*waiter  // of the held leases; nil for a lease that joined another
	answered bool
	err      error // the answer, if it is not the lease
}

// run gathers the keys and offers their lease until there is an answer.
func (f *multiFuture) run(results chan<- MultiResult) {
	if err := f.gather(); err != nil {
		f.answered, f.err = true, err
		results <- MultiResult{f}
		return
	}
	end := time.NewTimer(f.offer())
	defer end.Stop()
	results <- MultiResult{f}
	select {
	case <-f.settled:
	case <-f.ctx.Done():
		f.end(f.keys[0], waitEnded(f.ctx))
	case <-end.C:
		f.end(f.keys[0], ErrNotClaimed)
	case <-f.lease.base.Done():
		f.end(f.lostPart())
	case <-f.client.closing.begun:
		f.end(f.keys[0], ErrClosed)
	}
}

// offer makes each held lease one that has to be claimed, so that it is not renewed until then. It
// returns for how long all of them last. A lease that joined another is renewed with that one.
func (f *multiFuture) offer() (lasts time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.offered = make([]*waiter, len(f.held))
	for i, l := range f.held {
		f.offered[i] = f.offerPart(l)
		if left := time.Until(l.Deadline()); i == 0 || left < lasts {
			lasts = left
		}
	}
	return lasts
}

// offerPart undoes the claim of a part.
func (f *multiFuture) offerPart(l *Lease) *waiter {
	s := l.state
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	w := newWaiter(f.ctx)
	w.state = s
	var fx machine.Effects
	if !s.machine.Offer(&l.core, &w.Waiter, &fx) {
		return nil
	}
	s.carryOutLocked(&fx, watchdog.Now())
	return w
}

// claimLocked makes the lease its caller's, unless something has ended the offer.
func (f *multiFuture) claimLocked() {
	if f.ctx.Err() != nil {
		f.failLocked(f.keys[0], waitEnded(f.ctx))
		return
	}
	if f.client.closing.Load() {
		f.failLocked(f.keys[0], ErrClosed)
		return
	}
	for i, w := range f.offered {
		if w == nil {
			continue
		}
		if _, err := w.claim(); err != nil {
			f.failLocked(f.keys[i], err)
			return
		}
	}
	if !f.allLast() {
		f.failLocked(f.lostPart())
		return
	}
	f.lease.begin(f.keys, f.held)
	f.answerLocked(nil)
}

// lostPart returns the key and the reason of the part that ended first.
func (f *multiFuture) lostPart() (key string, reason error) {
	var part *PartError
	f.lease.mu.Lock()
	defer f.lease.mu.Unlock()
	if !errors.As(f.lease.err, &part) {
		return f.keys[0], ErrNotClaimed
	}
	return part.Key, part.Err
}

// end ends the offer, unless it was claimed.
func (f *multiFuture) end(key string, reason error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.answered {
		f.failLocked(key, reason)
	}
}

// failLocked gives all keys back. The reason becomes the answer.
func (f *multiFuture) failLocked(key string, reason error) {
	f.keep(0)
	f.answerLocked(f.failed(key, reason))
}

func (f *multiFuture) answerLocked(err error) {
	f.answered, f.err, f.offered = true, err, nil
	close(f.settled)
}
