// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/asynclock/asynclock-go/internal/clock"
)

// A limiter bounds calls to the store in time. A timer for each call would be
// the most expensive part of an uncontended lock on this side of the wire; calls
// that begin close together share one instead.
type limiter struct{ current atomic.Pointer[limit] }

// A limit is a moment at which calls are cut short.
type limit struct {
	context.Context //nolint:containedctx // it is one: it ends at that moment

	cancel  context.CancelFunc // never called: while one call is done, others go on
	timeout time.Duration
	until   clock.Instant // calls may begin under it until then
}

// sharing is the part of a timeout within which calls share a limit, and by
// which it may be shorter for them: an eighth.
const sharing = 8

// bound returns a context that ends when parent does, and after timeout at the
// latest. It may end earlier than that by an eighth.
func (r *limiter) bound(parent context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if parent.Done() == nil {
		if l := r.share(timeout); l != nil {
			return limited{l, parent}, func() {}
		}
	}
	return context.WithTimeout(parent, timeout)
}

// share returns a limit that has just begun, or nil if that of another timeout
// is in use: then this one's would not be shared either.
func (r *limiter) share(timeout time.Duration) *limit {
	now := clock.Now()
	l := r.current.Load()
	switch {
	case l == nil || now >= l.until:
	case l.timeout == timeout:
		return l
	default:
		return nil
	}
	fresh := &limit{timeout: timeout, until: now.Add(timeout / sharing)}
	fresh.Context, fresh.cancel = context.WithTimeout(context.Background(), timeout)
	r.current.Store(fresh)
	return fresh
}

// limited has the values of one context and the end of a limit.
type limited struct {
	*limit

	values context.Context //nolint:containedctx // it is one
}

// Value returns the call's value for key.
func (l limited) Value(key any) any { return l.values.Value(key) }
