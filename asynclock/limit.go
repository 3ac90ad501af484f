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

// A bounded is the context of a call under a limit. It has the values of its parent. It ends with
// the limit, and when grace has passed since the end of the parent.
//
// A store that answers at once never waits for that. So the context registers with its parent and
// with the limit when Done is called, and costs one allocation until then. A context with a timer
// costs four.
type bounded struct {
	parent context.Context //nolint:containedctx // it is a context itself
	limit  *limit
	grace  time.Duration // 0: it ends with its parent

	mu     sync.Mutex
	end    context.Context         //nolint:containedctx // tells of the end; nil until Done is called
	cancel context.CancelCauseFunc // ends it; set before the context registers
	stop   func() bool             // the watch of the parent, if there is a grace
	left   bool                    // the call has returned
}

// Deadline returns the moment at which the call is cut short at the latest.
func (b *bounded) Deadline() (time.Time, bool) {
	at, _ := b.limit.Deadline()
	if parents, ok := b.parent.Deadline(); ok && parents.Add(b.grace).Before(at) {
		at = parents.Add(b.grace)
	}
	return at, true
}

// Done returns a channel that is closed at the end.
func (b *bounded) Done() <-chan struct{} { return b.ending().Done() }

// Err returns nil until the end. The error of a time that is over is context.DeadlineExceeded.
func (b *bounded) Err() error {
	end, left := b.state()
	switch {
	case end != nil:
	case left:
		return context.Canceled
	case b.parent.Err() == nil:
		return b.limit.Err()
	default:
		end = b.ending()
	}
	if err := end.Err(); err == nil || context.Cause(end) != context.DeadlineExceeded { //nolint:errorlint // tell and endSoon set this very value
		return err
	}
	return context.DeadlineExceeded
}

// Value returns the parent's value for key. Contexts made from b find its end by a key of package
// context.
func (b *bounded) Value(key any) any {
	if end, _ := b.state(); end != nil {
		if v := end.Value(key); v != nil {
			return v
		}
	}
	if b.grace > 0 {
		return context.WithoutCancel(b.parent).Value(key)
	}
	return b.parent.Value(key)
}

// state returns the context that tells of the end, or nil, and whether the call has returned.
func (b *bounded) state() (end context.Context, left bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.end, b.left
}

// ending returns the context that tells of the end, and makes it if nobody has asked before. No
// mutex is held meanwhile, because the parent may be the application's own type.
func (b *bounded) ending() context.Context {
	if end, _ := b.state(); end != nil {
		return end
	}
	from := b.parent
	if b.grace > 0 {
		from = context.Background()
	}
	end, cancel := context.WithCancelCause(from)
	b.mu.Lock()
	if b.end != nil { // another goroutine was faster
		defer b.mu.Unlock()
		cancel(nil)
		return b.end
	}
	b.end, b.cancel = end, cancel
	b.mu.Unlock()
	b.limit.watch(b)
	stop := func() bool { return true }
	if b.grace > 0 {
		stop = context.AfterFunc(b.parent, b.endSoon) // its goroutine ends with b, which the caller leaves
	}
	b.mu.Lock()
	b.stop = stop
	left := b.left
	b.mu.Unlock()
	if left { // it did not stop what was not there yet
		b.release()
	}
	return end
}

// endSoon ends the context when grace has passed.
func (b *bounded) endSoon() {
	rest := time.NewTimer(b.grace)
	defer rest.Stop()
	select {
	case <-rest.C:
		b.cancel(context.DeadlineExceeded)
	case <-b.end.Done():
	}
}

// leave ends the context, because the call has returned.
func (b *bounded) leave() {
	b.mu.Lock()
	b.left = true
	b.mu.Unlock()
	b.release()
	b.limit.leave()
}

// release stops what ending has begun.
func (b *bounded) release() {
	b.mu.Lock()
	end, cancel, stop := b.end, b.cancel, b.stop
	b.mu.Unlock()
	if end == nil {
		return
	}
	b.limit.unwatch(b)
	if stop != nil {
		stop()
	}
	cancel(nil)
}
