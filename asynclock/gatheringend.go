// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
)

// leave ends a future whose context has ended. The last one ends with the gathering, which says why.
func (g *sharedGathering) leave(f *multiFuture) {
	reason := waitEnded(f.ctx)
	if g.leaves(f) {
		f.fail(g.whyEnded(reason))
	}
}

// leaves reports whether f is to end by itself.
func (g *sharedGathering) leaves(f *multiFuture) bool {
	all := &g.client.gatherings
	all.mu.Lock()
	defer all.mu.Unlock()
	lay := g.lying == f
	switch {
	case f.place < 0, lay && !g.takeBackLocked():
		return false // it was received, or has ended
	case g.pending == 1:
		g.overLocked(f.ctx)
		return false
	}
	if g.removeLocked(f); lay {
		g.offerLocked(0)
		g.tellChanged()
	}
	return true
}

// whyEnded returns the error of a wait that has ended, with the key that is waited for and what is in the way.
func (g *sharedGathering) whyEnded(reason error) error {
	w := g.queued.Load()
	if w == nil || w.state == nil {
		return g.failed(g.keys[0], reason)
	}
	verdict, s := outcomeOf(reason), w.state
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	return g.failed(s.machine.Name, w.whyEndedLocked(reason, verdict))
}

// sweep ends the futures that nobody refers to. It looks at them also while the keys are waited for.
func (g *sharedGathering) sweep() {
	all := &g.client.gatherings
	all.mu.Lock()
	defer all.mu.Unlock()
	if g.over {
		return
	}
	if g.sweepLocked(len(g.futures)); g.pending == 0 {
		g.overLocked(gone)
		return
	}
	g.sweeper.Reset(sweepPause)
}

// sweepLocked ends those of the next n futures that nobody refers to.
func (g *sharedGathering) sweepLocked(n int) {
	for range min(n, len(g.futures)) {
		if g.swept >= len(g.futures) {
			g.swept = 0
		}
		f := g.futures[g.swept]
		if g.swept++; f != nil && f != g.lying && f.results.isGone() {
			g.removeLocked(f)
			f.fail(f.failed(f.keys[0], machine.ErrGone)) // no error of the application's
		}
	}
	if len(g.futures) > 2*g.pending {
		g.compactLocked()
	}
}

// removeLocked removes a future that has its answer, or is about to.
func (g *sharedGathering) removeLocked(f *multiFuture) {
	g.futures[f.place], f.place = nil, -1
	g.pending--
	if g.callers[f.caller]--; g.callers[f.caller] == 0 {
		delete(g.callers, f.caller)
	}
	g.client.stops.Add(0, func() bool {
		defer f.cancel() // the caller's context may be the application's own type
		return f.stop()
	})
}

// compactLocked gives the futures their places in a list without those that were removed.
func (g *sharedGathering) compactLocked() {
	all, offered := g.futures, g.offered
	g.futures, g.offered = all[:0], 0
	for i, f := range all {
		if f == nil {
			continue
		}
		if i < offered {
			g.offered++
		}
		f.place, g.futures = len(g.futures), append(g.futures, f)
	}
	clear(all[len(g.futures):])
}

// overLocked lets no future come any more, and ends what is under way as ctx has ended.
func (g *sharedGathering) overLocked(ctx context.Context) {
	if g.over {
		return
	}
	g.over = true
	if all := &g.client.gatherings; all.of[g.id] == g {
		delete(all.of, g.id)
	}
	g.sweeper.Stop()
	g.last.end(ctx)
}

// end ends all futures that are pending with an error.
func (g *sharedGathering) end(err error) {
	for _, f := range g.ends() {
		f.fail(err)
	}
}

func (g *sharedGathering) ends() (futures []*multiFuture) {
	all := &g.client.gatherings
	all.mu.Lock()
	defer all.mu.Unlock()
	g.overLocked(gone)
	for _, f := range g.futures {
		if f != nil {
			g.removeLocked(f)
			futures = append(futures, f)
		}
	}
	g.futures, g.offered = nil, 0
	return futures
}

// gone is how the context of futures has ended that nobody refers to.
var gone = func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(machine.ErrGone)
	return ctx
}()

// A lastContext bounds a gathering. It ends as that of the last future has ended, and has nothing else of any.
type lastContext struct {
	context.Context //nolint:containedctx // it ends with ours

	cancel context.CancelCauseFunc
	err    error // set before the end
}

func newLastContext() *lastContext {
	c := new(lastContext)
	c.Context, c.cancel = context.WithCancelCause(context.Background())
	return c
}

func (c *lastContext) Err() error {
	if c.Context.Err() == nil {
		return nil
	}
	return c.err
}

func (c *lastContext) end(as context.Context) {
	c.err = as.Err()
	c.cancel(context.Cause(as))
}
