// SPDX-License-Identifier: Apache-2.0

package asynclock

import "context"

// A watch ends the waiting of futures when their context ends, without a
// goroutine until then. The futures of one shard that share a context share a
// watch: thousands of them, as a rule, come from one caller.
//
// A context may be the application's code, which does as it likes: ask about a
// lease, or not return. So it is neither registered with nor deregistered from
// under the shard's mutex, nor on a goroutine that others depend on.
type watch struct {
	done    <-chan struct{}
	waiters []*waiter
	stop    func() bool // nil as long as it is not armed
}

// watchLocked notes that w waits no longer than done is open. It returns the watch
// that its caller is to arm when the mutex is free, or nil if that is done, or being
// done, by another.
func (sh *shard) watchLocked(w *waiter, done <-chan struct{}) *watch {
	if done == nil {
		return nil
	}
	g := sh.watches[done]
	isNew := g == nil
	if isNew {
		g = &watch{done: done}
		sh.watches[done] = g
	}
	w.watch, w.watchPlace = g, int32(len(g.waiters))
	g.waiters = append(g.waiters, w)
	if isNew {
		return g
	}
	return nil
}

// arm makes the watch end with ctx. If nobody is left by then whom it is for, it is
// put out at once.
func (sh *shard) arm(ctx context.Context, g *watch) {
	stop := context.AfterFunc(ctx, func() { sh.watchEnded(ctx, g) })
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

// unwatchLocked forgets w, whose waiting is over. After the last one it returns
// what puts out the light, to be called when the mutex is free; otherwise nil.
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

// watchEnded withdraws everyone who waited under ctx, which has ended.
func (sh *shard) watchEnded(ctx context.Context, g *watch) {
	reason := waitEnded(ctx)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for len(g.waiters) > 0 {
		w := g.waiters[0]
		w.state.removeWaiterLocked(w, reason)
	}
}

// stopWatches puts out watches that came to their end where nobody could wait for it.
func (c *Client) stopWatches(_ int, stops []func() bool) {
	for _, stop := range stops {
		stop()
	}
}
