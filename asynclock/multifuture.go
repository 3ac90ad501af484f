// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// How a lease over several keys lies in its channel.
const (
	multiPatience  = 100 * time.Millisecond // how long it lies although others want a key of it
	firstGathering = 250 * time.Millisecond // the pause before the keys are gathered again
	lastGathering  = 30 * time.Second       // and the longest one
)

// LockAllChan is [Client.LockAll] as a future. The channel receives exactly one [MultiResult], and is never
// closed. The receiver owns the lease from that moment.
//
// A lease that nobody has received is the client's, which renews it. If anybody wants one of its keys, all are
// given back after a tenth of a second. They are gathered again after a pause, which grows from 250 ms to 30 s. If
// ctx ends, the client closes or the store fails, a pending future ends with the error, which stays in the
// channel.
//
// A goroutine waits for each call, unlike for [Client.LockChan]. It ends when the result was looked at, or with an
// error. Keys that are had early are renewed while others are waited for, for as long
// as ctx lasts. So a caller that loses interest has to end ctx.
func (c *Client) LockAllChan(ctx context.Context, keys []string, options ...LockOption) <-chan MultiResult {
	f := &multiFuture{
		gatherer: gatherer{client: c, ctx: ctx, op: "lock all", future: true},
		results:  make(chan MultiResult, 1), settled: make(chan struct{}),
	}
	err := f.accept(keys, options)
	if f.countRequested(); err != nil {
		f.answer(err)
		f.results <- MultiResult{f}
		return f.results
	}
	c.enter()
	// The goroutine ends when the result was received and looked at, the context ends or the client closes.
	// Close waits for it, because it has entered.
	go func() {
		defer c.leave()
		defer f.cancel()
		f.run()
	}()
	return f.results
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

// A multiFuture is a gatherer whose lease lies in a channel until somebody receives it.
type multiFuture struct {
	gatherer

	results chan MultiResult // has room for the one
	settled chan struct{}    // closed when the answer is known
	once    sync.Once
	err     error // once settled: the answer, if it is not the lease
}

// run gathers the keys, and lets their lease lie until there is an answer.
func (f *multiFuture) run() {
	for pause := firstGathering; ; pause = min(4*pause, lastGathering) {
		if err := f.gather(); err != nil {
			f.answer(err)
			f.results <- MultiResult{f}
			return
		}
		f.results <- MultiResult{f}
		reason, over := f.lie()
		if !f.takeBack() {
			if f.received() {
				f.asked.waitedLater(f.err)
			}
			if f.err != nil {
				f.keep(0)
			}
			return
		}
		f.keep(0)
		f.awaitGiven()
		// It comes last again, or futures that nobody receives would pass everybody for ever.
		if f.given, f.place = nil, 0; over || !f.rest(pause) {
			if reason == nil {
				reason = f.whyEnded()
			}
			f.answer(f.failed(f.keys[0], reason))
			f.results <- MultiResult{f}
			return
		}
	}
}

// lie returns when the lease must not lie any longer. If the future is over then, it returns why.
func (f *multiFuture) lie() (reason error, over bool) {
	look := time.NewTicker(multiPatience)
	defer look.Stop()
	for {
		select {
		case <-f.settled:
			return nil, false
		case <-f.ctx.Done():
			return waitEnded(f.ctx), true
		case <-f.client.closing.begun:
			return ErrClosed, true
		case <-f.lease.base.Done(): // nobody has lost anything
			return nil, false
		case <-look.C:
			if len(f.results) == 0 || f.isContested() {
				return nil, false
			}
		}
	}
}

// rest waits before the keys are gathered again. It reports false if the future is over.
func (f *multiFuture) rest(pause time.Duration) bool {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-f.ctx.Done():
	case <-f.client.closing.begun:
	}
	return false
}

func (f *multiFuture) whyEnded() error {
	if f.ctx.Err() != nil {
		return waitEnded(f.ctx)
	}
	return ErrClosed
}

// isContested reports whether anybody wants a key of the lease.
func (f *multiFuture) isContested() bool {
	return slices.ContainsFunc(f.held, func(l *Lease) bool {
		sh := l.state.shard
		sh.mu.Lock()
		defer sh.mu.Unlock()
		return l.state.machine.IsContested(&l.core)
	})
}

// takeBack takes the result out of the channel. It reports whether it was still there.
func (f *multiFuture) takeBack() bool {
	select {
	case <-f.results:
		return true
	default:
		return false
	}
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

// answer makes the error the answer. Nobody has the result yet.
func (f *multiFuture) answer(err error) {
	f.countFailed(err)
	f.asked.waitedLater(err)
	f.err = err
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
