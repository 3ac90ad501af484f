// SPDX-License-Identifier: Apache-2.0

package asynclock

import "context"

// A watch ends the waiting of futures when their context ends, without a goroutine until then. The
// futures of one shard that share a context share a watch, because usually thousands of them come
// from one caller.
//
// A context may be the application's own type. Its methods may ask about a lease, or not return.
// The client therefore neither registers nor deregisters with it under the shard's mutex, nor on a
// goroutine that others depend on.
type watch struct {
	bound
	waiters []*waiter
	stop    func() bool // nil until it is armed
}

// A bound ends the waiting of a future. The zero bound ends none.
type bound struct {
	done   <-chan struct{}
	caller <-chan struct{} // of the context that the caller gave. It is another one with [WithWait]
}

// watchLocked records that w waits only as long as b.done is open. It returns the watch that the
// caller must arm after it has unlocked the mutex. It returns nil if another caller arms it or has
// armed it.
func (sh *shard) watchLocked(w *waiter, b bound) *watch {
	if b.done == nil {
		return nil
	}
	g := sh.watches[b.done]
	isNew := g == nil
	if isNew {
		g = &watch{bound: b}
		sh.watches[b.done] = g
	}
	w.watch, w.watchPlace = g, int32(len(g.waiters))
	g.waiters = append(g.waiters, w)
	if isNew {
		return g
	}
	return nil
}

// arm makes the watch end with ctx. If no waiter is left by then, the watch is stopped at once.
// Cancel, if not nil, ends ctx; it is called when the watch is stopped.
func (sh *shard) arm(ctx context.Context, g *watch, cancel context.CancelFunc) {
	stop := context.AfterFunc(ctx, func() { sh.watchEnded(ctx, g) })
	if cancel != nil {
		stopWatch := stop
		stop = func() bool {
			defer cancel()
			return stopWatch()
		}
	}
	sh.mu.Lock()
	used := len(g.waiters) > 0
	if used {
		g.stop = stop
	}
	sh.mu.Unlock()
	if !used {
		stop()
	}
}

// unwatchLocked removes w, whose waiting is over. If w was the last waiter, it returns the function
// that stops the watch, which must be called after the mutex is unlocked. Otherwise it returns nil.
func (sh *shard) unwatchLocked(w *waiter) (stop func() bool) {
	g := w.watch
	if g == nil {
		return nil
	}
	w.watch = nil
	last := len(g.waiters) - 1
	moved := g.waiters[last]
	g.waiters[w.watchPlace], moved.watchPlace = moved, w.watchPlace
	g.waiters[last] = nil
	g.waiters = g.waiters[:last]
	if last > 0 {
		return nil
	}
	delete(sh.watches, g.done)
	return g.stop
}

// watchEnded withdraws all who waited under ctx, which has ended.
func (sh *shard) watchEnded(ctx context.Context, g *watch) {
	reason := waitEnded(ctx)
	verdict := outcomeOf(reason)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for len(g.waiters) > 0 {
		w := g.waiters[0]
		w.endWaitLocked(reason, verdict)
	}
}

// stopWatches stops watches that ended where no caller could do it.
func (c *Client) stopWatches(_ int, stops []func() bool) {
	for _, stop := range stops {
		stop()
	}
}
