// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/internal/clock"
)

// A limit is a context that ends after a while. All calls to the store that
// begin in the first eighth of that while share it: a context and a timer of its
// own for each call would be a fifth of what a lock and its unlock cost a client.
type limit struct {
	context.Context //nolint:containedctx // it is one
	cancel          context.CancelFunc
	until           clock.Instant
	users           int // calls under way, and one while further ones may join
}

// Limits are those that calls may join, one for each class of timeouts.
type limits struct {
	mu      sync.Mutex
	current [timeoutClasses]*limit
}

// within returns a limit that ends with parent, or after timeout, or up to an
// eighth of it earlier. The parent is the same for all. Its user has to leave.
func (ls *limits) within(parent context.Context, timeout time.Duration) *limit {
	place := &ls.current[timeoutClass(timeout)]
	ls.mu.Lock()
	defer ls.mu.Unlock()
	now := clock.Now()
	if l := *place; l != nil {
		if left := l.until.Sub(now); left <= timeout && left >= timeout-timeout/8 {
			l.users++
			return l
		}
		l.leaveLocked()
	}
	ctx, cancel := context.WithTimeout(parent, timeout)
	*place = &limit{ctx, cancel, now.Add(timeout), 2}
	return *place
}

func (ls *limits) leave(l *limit) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l.leaveLocked()
}

func (l *limit) leaveLocked() {
	if l.users--; l.users == 0 {
		l.cancel()
	}
}

// A valued is a context with the values of another.
type valued struct {
	context.Context                 //nolint:containedctx // it is one
	values          context.Context //nolint:containedctx // that is what it is for
}

func (v valued) Value(key any) any { return v.values.Value(key) }
