// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// LockAllChan is [Client.LockAll] as a future. The channel receives exactly one [MultiResult], and is never
// closed. The receiver owns the lease from that moment.
//
// A lease that nobody has received is the client's, which renews it. It goes at once to another future of this client
// for the same keys with the same options. If anybody else wants one of its keys, all are given back after a tenth of a
// second. They are gathered again when another such future comes, or after a pause, which grows from 250 ms to 30 s.
// Keys that are had early are renewed while others are waited for.
//
// So a select in a loop may call LockAllChan in each turn, and may be left at any time. Nobody has to receive. If
// ctx ends, the client closes or the store fails, a pending future ends with the error, which stays in the channel.
//
// Futures that wait for the same keys with the same options share one goroutine, and one place in the queues, whatever
// their contexts. One that has no lease, and whose channel nobody refers to any more, ends sooner or later.
func (c *Client) LockAllChan(ctx context.Context, keys []string, options ...LockOption) <-chan MultiResult {
	results := make(chan MultiResult, 1)
	f := &multiFuture{
		gatherer: gatherer{client: c, ctx: ctx, op: "lock all", future: true},
		results:  weaklyTo(results), settled: make(chan struct{}),
	}
	err := f.accept(keys, options)
	if f.countRequested(); err == nil {
		if err = f.gatherWithOthers(results); err != nil {
			f.cancel()
		}
	}
	if err != nil {
		f.fail(err)
	}
	return results
}

// A MultiResult is the value that the channel of [Client.LockAllChan] yields: a lease, which is the receiver's,
// or an error. The zero MultiResult is none.
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

// Lease returns the lease, which is the caller's since it has received the MultiResult. The error is that of
// [Client.LockAll], or [ErrLost] if the lease has ended before this call. Every call returns the same answer.
func (r MultiResult) Lease() (*MultiLease, error) {
	f := r.future
	if f == nil {
		return nil, fmt.Errorf("%w: the zero MultiResult", ErrInvalidOption)
	}
	decided := f.received()
	if f.asked != nil {
		f.asked.lookedAll(&f.gatherer, f.err, decided)
	}
	if f.err != nil {
		return nil, f.err
	}
	return f.lease, nil
}

// A multiFuture is a request whose result lies in a channel until somebody receives it. A gathering takes its keys.
// The lease of that is the future's while it lies in its channel.
type multiFuture struct {
	gatherer

	results weakChan[MultiResult] // has room for the one
	settled chan struct{}         // closed when the answer is known
	once    sync.Once
	err     error // once settled: the answer, if it is not the lease

	// Both are guarded by the mutex of the client's gatherings.

	stop  func() bool // ends the watch of its context
	place int         // in the gathering's list; negative: it has its answer, or is about to
}

// received makes the lease its receiver's. If it has ended already, the answer is the error. Decided reports whether this
// was open until now.
func (f *multiFuture) received() (decided bool) {
	f.once.Do(func() {
		defer close(f.settled)
		if f.err != nil {
			return
		}
		decided = true
		if f.allLast() {
			f.own()
			f.begin()
			return
		}
		key, reason := f.lostPart()
		f.err = f.failed(key, reason)
		f.countAcquired()
		f.client.several.count(endOf(reason))
	})
	return decided
}

// own makes a lease with the values of the future's own context, of the parts that were gathered for others, too.
func (f *multiFuture) own() {
	f.lease = f.newMultiLease()
	for _, l := range f.held {
		l.requestedBy(f.ctx, f.origin)
		f.lease.adopt(l)
	}
}

// fail makes the error the answer, which goes into the channel if anybody refers to that.
func (f *multiFuture) fail(err error) {
	f.countFailed(err)
	f.asked.waitedLater(err)
	f.err = err
	if results := f.results.get(); results != nil {
		results <- MultiResult{f}
	}
}

// lostPart returns the key and the reason of the part that ended first.
func (f *multiFuture) lostPart() (key string, reason error) {
	f.lease.mu.Lock()
	defer f.lease.mu.Unlock()
	if part, ok := f.lease.err.(*PartError); ok { //nolint:errorlint // it is never wrapped
		return part.Key, part.Err
	}
	return f.keys[0], ErrLost
}
