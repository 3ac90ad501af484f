// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"slices"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
)

// leave ends a future whose context has ended. The last one ends with the gathering, whose error says more.
func (g *sharedGathering) leave(f *multiFuture) {
	all := &g.client.gatherings
	all.mu.Lock()
	defer all.mu.Unlock()
	lay := g.lying == f
	switch {
	case !slices.Contains(g.futures, f), lay && !g.takeBackLocked():
		return // it was received, or has ended
	case len(g.futures) == 1:
		g.overLocked(f.ctx)
		return
	}
	g.removeLocked(f)
	f.fail(f.failed(f.keys[0], waitEnded(f.ctx)))
	if lay {
		g.offerLocked(0)
		g.tellChanged()
	}
}

// sweep ends the futures that nobody refers to. It looks at them also while the keys are waited for.
func (g *sharedGathering) sweep() {
	all := &g.client.gatherings
	all.mu.Lock()
	defer all.mu.Unlock()
	if g.over {
		return
	}
	if g.sweepLocked(len(g.futures)); len(g.futures) == 0 {
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
		if f == g.lying || !f.results.isGone() {
			g.swept++
			continue
		}
		g.removeLocked(f)
		f.fail(f.failed(f.keys[0], machine.ErrGone))
	}
}

// removeLocked removes a future that has its answer, or is about to.
func (g *sharedGathering) removeLocked(f *multiFuture) {
	i := slices.Index(g.futures, f)
	g.futures = slices.Delete(g.futures, i, i+1)
	if i < g.offered {
		g.offered--
	}
	if g.callers[f.caller]--; g.callers[f.caller] == 0 {
		delete(g.callers, f.caller)
	}
	g.client.stops.Add(0, func() bool {
		defer f.cancel() // the caller's context may be the application's own type
		return f.stop()
	})
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
	all := &g.client.gatherings
	all.mu.Lock()
	defer all.mu.Unlock()
	g.overLocked(gone)
	for len(g.futures) > 0 {
		f := g.futures[0]
		g.removeLocked(f)
		f.fail(err)
	}
}

// gone is how the context of futures has ended that nobody refers to.
var gone = func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(machine.ErrGone)
	return ctx
}()

// A lastContext bounds a gathering. It has the values of the first future's context, and ends as that of the last
// one has ended.
type lastContext struct {
	context.Context //nolint:containedctx // it ends with ours

	cancel context.CancelCauseFunc
	err    error // set before the end
}

func newLastContext(first context.Context) *lastContext {
	c := new(lastContext)
	c.Context, c.cancel = context.WithCancelCause(context.WithoutCancel(first))
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
