// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
)

// How long what was gathered lies, and when it is gathered again.
const (
	multiPatience  = 100 * time.Millisecond // it lies although others want a key of it
	briefPatience  = 2 * time.Millisecond   // likewise, for futures that somebody was preferred to
	firstGathering = 250 * time.Millisecond // the pause before the keys are gathered again
	lastGathering  = 30 * time.Second       // and the longest one
	newTurn        = time.Millisecond       // it lies with a future that has just come
	firstTurn      = 10 * time.Millisecond  // with the one before
	lastTurn       = 250 * time.Millisecond // and with each in the end
	sweepPause     = time.Second            // between two looks for futures that nobody refers to
)

// fewSwept is how many futures an arrival looks at. They are more than the one that a loop leaves behind with each
// arrival, so these don't add up.
const fewSwept = 3

// The gatherings of a client that more futures may come to.
type gatherings struct {
	mu sync.Mutex // only what counts, hooks and the queue of stops have is locked under it
	of map[gatheringID]*sharedGathering
}

// A gatheringID says which futures share a gathering.
type gatheringID struct {
	keys  string
	terms machine.Terms
	try   bool
	outer *leaseContext // that they may join leases of; nil: none
}

// A sharedGathering takes several keys for all futures that want them on the same terms. A loop around a select leaves a
// future behind in each turn. If each of them gathered by itself, they would take the keys from each other, and from the
// one that the loop receives from.
type sharedGathering struct {
	gatherer

	id      gatheringID
	last    *lastContext  // bounds the waiting
	changed chan struct{} // has room for one: a future came, or went

	// All below is guarded by the mutex of the client's gatherings.

	futures []*multiFuture          // the one that the lease lies with is at the end, unless another came since; nil: removed
	pending int                     // how many there are
	callers map[<-chan struct{}]int // how many are of each context
	lying   *multiFuture            // that the lease lies with, or did when it was received; nil: none
	channel chan MultiResult        // in which it lies: held, so that "gone" does not look like "received"
	waits   bool                    // for the keys
	came    bool                    // a future has, since the lease was offered
	over    bool                    // no future can come any more
	offered int                     // the lease has been in the channels of so many of them, from the first on
	swept   int                     // the next one to look at, whether it is gone
	sweeper *time.Timer
}

// gatherWithOthers makes f a future of the gathering for its keys. A lease that lies there already is in its channel then.
func (f *multiFuture) gatherWithOthers(results chan MultiResult) error {
	all := &f.client.gatherings
	id := f.gatheringID()
	all.mu.Lock()
	defer all.mu.Unlock()
	if g := all.of[id]; g != nil && (!f.try || g.lying != nil) { // the answer to an older try may be old
		return g.addLocked(f, results)
	}
	g := newSharedGathering(f, id)
	all.of[id] = g
	f.client.enter()
	g.sweeper = time.AfterFunc(sweepPause, g.sweep)
	// The goroutine ends when no future is pending any more: each was received, its context has ended, the client has
	// closed, or nobody refers to its channel. Close waits for it, because it has entered.
	go func() {
		defer f.client.leave()
		defer g.end(g.failed(g.keys[0], ErrOutcomeUnknown)) // unless it ends otherwise
		g.run()
	}()
	return g.addLocked(f, results)
}

func (f *multiFuture) gatheringID() gatheringID {
	id := gatheringID{fmt.Sprintf("%q", f.keys), f.settings.Terms, f.try, nil}
	if slices.ContainsFunc(f.keys, func(key string) bool { return f.under(key) != nil }) {
		id.outer = f.outer
	}
	return id
}

func newSharedGathering(f *multiFuture, id gatheringID) *sharedGathering {
	last := newLastContext()
	return &sharedGathering{
		gatherer: gatherer{
			client: f.client, op: f.op, keys: f.keys, settings: f.settings, outer: id.outer,
			values: context.Background(), ctx: last, try: f.try, future: true, origin: f.origin,
		},
		id: id, last: last, changed: make(chan struct{}, 1), callers: make(map[<-chan struct{}]int), waits: true,
	}
}

// addLocked adds a future, which has the lease if that lies.
func (g *sharedGathering) addLocked(f *multiFuture, results chan MultiResult) error {
	g.sweepLocked(fewSwept)
	if limit := g.settings.QueueLimit; g.waits && !g.try && g.callers[f.caller] == 0 && len(g.callers) >= limit {
		return f.failed(f.keys[0], ErrQueueFull)
	}
	g.came = true
	g.callers[f.caller]++
	g.pending++
	f.place, g.futures = len(g.futures), append(g.futures, f)
	// The context is our own, so no method of the application is called.
	f.stop = context.AfterFunc(f.ctx, func() { g.leave(f) })
	if g.lying != nil && !g.lease.core.Over.Load() && g.takeBackLocked() {
		g.layLocked(f, results)
		g.offered, f.waited = len(g.futures), false
	}
	g.tellChanged()
	return nil
}

func (g *sharedGathering) tellChanged() {
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

// run gathers the keys, and lets their lease lie until it was received or must not lie any longer.
func (g *sharedGathering) run() {
	var received bool
	for pause := firstGathering; ; {
		g.begins()
		if err := g.gather(); err != nil {
			g.end(err)
			return
		}
		patience := multiPatience
		if isNew := g.offer(); received && !isNew {
			patience = briefPatience
		}
		over := g.lie(patience)
		receiver, came, left := g.taken()
		if received = receiver != nil; received {
			g.settle(receiver)
		} else {
			g.keep(0)
			g.awaitGiven()
		}
		// It comes last again, or futures that nobody receives would pass everybody for ever.
		g.held, g.given, g.place, g.waited = nil, nil, 0, false
		if came = came || received; over == nil && left && !came && !g.try { // a try does not wait
			came, over = g.rest(pause)
		}
		if over != nil || !left {
			g.end(g.failed(g.keys[0], over))
			return
		}
		if pause = min(4*pause, lastGathering); came {
			pause = firstGathering
		}
	}
}

// lie returns when the lease was received, or must not lie any longer. If no future is pending then, it returns why.
func (g *sharedGathering) lie(patience time.Duration) (over error) {
	look, turn := time.NewTicker(patience), newTurn
	defer look.Stop()
	turns := time.NewTimer(turn)
	defer turns.Stop()
	for {
		select {
		case <-g.settled():
			return nil
		case <-g.changed:
			if turn > newTurn { // or many that come would put it off for ever
				turn = newTurn
				turns.Reset(turn)
			}
		case <-turns.C:
			g.nextTurn()
			turn = min(max(2*turn, firstTurn), lastTurn)
			turns.Reset(turn)
		case <-g.ctx.Done():
			return waitEnded(g.ctx)
		case <-g.client.closing.begun:
			return ErrClosed
		case <-g.lease.base.Done(): // nobody has lost anything
			return nil
		case <-look.C:
			if g.isReceived() || g.isContested() {
				return nil
			}
			look.Reset(multiPatience)
		}
	}
}

// settle makes the lease its receiver's, who may not have looked at it yet.
func (g *sharedGathering) settle(f *multiFuture) {
	if f.received() {
		f.asked.waitedLater(f.err)
	}
	if f.err != nil {
		f.keep(0)
	}
}

// rest waits before the keys are gathered again. It returns early if a future comes. If no future is pending
// any more, it returns why.
func (g *sharedGathering) rest(pause time.Duration) (came bool, over error) {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
		return false, nil
	case <-g.changed:
		return true, nil
	case <-g.ctx.Done():
		return false, waitEnded(g.ctx)
	case <-g.client.closing.begun:
		return false, ErrClosed
	}
}
