// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/asynclock/asynclock-go/watchdog"
)

// A limiter bounds the time of calls to the store. A timer for each call would be the most
// expensive part of an uncontended lock in this process, so calls that begin close together share
// one.
type limiter struct {
	current atomic.Pointer[limit] // nil: none
	closed  atomic.Bool
}

// A limit is a moment at which calls are cut short.
type limit struct {
	context.Context //nolint:containedctx // it is one: it ends at that moment

	cancel  context.CancelFunc
	timeout time.Duration
	until   watchdog.Instant // calls may begin under it until then
	// users counts the calls under this limit, plus one for as long as others may begin. The last
	// user cancels the limit, because nobody would wait for its timer.
	users atomic.Int64
	leave context.CancelFunc // for a user that finishes; made once, because every call needs it
}

// enter makes the caller a user, unless the limit is over.
func (l *limit) enter() bool {
	for {
		n := l.users.Load()
		if n == 0 {
			return false
		}
		if l.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// sharing is the part of a timeout within which calls share a limit: an eighth. A shared timeout
// may be shorter by the same part.
const sharing = 8

// bound returns a context that ends when parent ends, and after timeout at the latest. It may end
// earlier than timeout by an eighth.
func (r *limiter) bound(parent context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if parent.Done() == nil {
		if l := r.share(timeout); l != nil {
			return limited{l, parent}, l.leave
		}
	}
	return context.WithTimeout(parent, timeout)
}

// share makes the caller a user of a limit that has just begun. It returns nil if a limit of
// another timeout is in use, because then the caller's limit would not be shared either.
func (r *limiter) share(timeout time.Duration) *limit {
	now := watchdog.Now()
	old := r.current.Load()
	switch {
	case r.closed.Load():
		return nil
	case old == nil || now >= old.until:
	case old.timeout != timeout:
		return nil
	case old.enter():
		return old
	}
	fresh := &limit{timeout: timeout, until: now.Add(timeout / sharing)}
	fresh.Context, fresh.cancel = context.WithTimeout(context.Background(), timeout)
	fresh.leave = func() {
		if fresh.users.Add(-1) == 0 {
			fresh.cancel()
		}
	}
	fresh.users.Store(2)
	switch {
	case !r.current.CompareAndSwap(old, fresh): // another call was faster
		fresh.leave()
	case old != nil:
		old.leave()
	}
	if r.closed.Load() {
		r.close()
	}
	return fresh
}

// close stops the limiter's timer, so that no timer outlives the calls under way.
func (r *limiter) close() {
	r.closed.Store(true)
	if l := r.current.Swap(nil); l != nil {
		l.leave()
	}
}

// limited has the values of one context and the end of a limit.
type limited struct {
	*limit

	values context.Context //nolint:containedctx // it is one
}

// Value returns the call's value for key.
func (l limited) Value(key any) any { return l.values.Value(key) }
