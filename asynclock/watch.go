// SPDX-License-Identifier: Apache-2.0

package asynclock

import "context"

// A watch ends the waiting of futures when their context ends, without a
// goroutine until then. The futures of one shard that share a context share a
// watch: thousands of them, as a rule, come from one caller.
type watch struct {
	done    <-chan struct{}
	waiters []*waiter
	stop    func() bool
}

// watchLocked ends w's waiting when its context ends.
func (sh *shard) watchLocked(w *waiter) {
	done := w.ctx.Done()
	if done == nil {
		return
	}
	g := sh.watches[done]
	if g == nil {
		g = &watch{done: done}
		sh.watches[done] = g
		g.stop = context.AfterFunc(w.ctx, func() { sh.watchEnded(g) })
	}
	w.watch, w.watchPlace = g, int32(len(g.waiters))
	g.waiters = append(g.waiters, w)
}

// unwatchLocked forgets w, whose waiting is over. The last one puts out the
// light.
func (sh *shard) unwatchLocked(w *waiter) {
	g := w.watch
	if g == nil {
		return
	}
	w.watch = nil
	last := len(g.waiters) - 1
	moved := g.waiters[last]
	g.waiters[w.watchPlace], moved.watchPlace = moved, w.watchPlace
	g.waiters[last] = nil
	g.waiters = g.waiters[:last]
	if last == 0 {
		g.stop()
		delete(sh.watches, g.done)
	}
}

// watchEnded withdraws everyone who waited under a context that has ended.
func (sh *shard) watchEnded(g *watch) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for len(g.waiters) > 0 {
		w := g.waiters[0]
		w.state.expelLocked(w, waitEnded(w.ctx))
	}
}
