// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"sync"
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

	mu      sync.Mutex
	watched map[*bounded]struct{} // the calls that have to be told of its end; nil until there is one
	stop    func() bool           // the telling; nil until there is a call
}

// A callContext is the context of one call to the store. Its user leaves it when the call has
// returned.
type callContext interface {
	context.Context
	leave()
}

// newLimit makes a limit with one user.
func newLimit(timeout time.Duration) *limit {
	l := &limit{timeout: timeout}
	l.Context, l.cancel = context.WithTimeout(context.Background(), timeout)
	l.users.Store(1)
	return l
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

// leave is called by a user that finishes.
func (l *limit) leave() {
	if l.users.Add(-1) > 0 {
		return
	}
	l.mu.Lock()
	stop := l.stop
	l.mu.Unlock()
	if stop != nil {
		stop()
	}
	l.cancel()
}

// watch makes the end of the limit end b, too.
func (l *limit) watch(b *bounded) {
	l.mu.Lock()
	if l.watched == nil {
		l.watched = make(map[*bounded]struct{})
		l.stop = context.AfterFunc(l.Context, l.tell)
	}
	l.watched[b] = struct{}{}
	l.mu.Unlock()
	if l.Err() != nil {
		l.tell()
	}
}

// unwatch undoes watch. It does nothing if there was none.
func (l *limit) unwatch(b *bounded) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.watched, b)
}

// tell ends the contexts that end with the limit, which is over.
func (l *limit) tell() {
	l.mu.Lock()
	watched := l.watched
	l.watched = make(map[*bounded]struct{})
	l.mu.Unlock()
	for b := range watched {
		b.cancel(context.DeadlineExceeded)
	}
}

// sharing is the part of a timeout within which calls share a limit: an eighth. A shared timeout
// may be shorter by the same part.
const sharing = 8

// bound returns a context that ends when parent has ended and grace has passed since, and after
// timeout at the latest. It may end earlier than timeout by an eighth.
func (r *limiter) bound(parent context.Context, timeout, grace time.Duration) callContext {
	if grace > 0 && parent.Err() != nil { // its deadline, if it has one, may be long past
		return &bounded{parent: context.WithoutCancel(parent), limit: newLimit(min(grace, timeout))}
	}
	l := r.share(timeout)
	if parent == context.Background() || parent == context.TODO() {
		return l // it has no values and no end of its own
	}
	return &bounded{parent: parent, limit: l, grace: grace}
}

// share makes the caller a user of a limit that has just begun. If a limit of another timeout is in
// use, the caller gets one of its own, because another one would not be shared either.
func (r *limiter) share(timeout time.Duration) *limit {
	now := watchdog.Now()
	old := r.current.Load()
	switch {
	case r.closed.Load():
		return newLimit(timeout)
	case old == nil || now >= old.until:
	case old.timeout != timeout:
		return newLimit(timeout)
	case old.enter():
		return old
	}
	fresh := newLimit(timeout)
	fresh.until = now.Add(timeout / sharing)
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
