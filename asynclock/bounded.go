// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"sync"
	"time"
)

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
