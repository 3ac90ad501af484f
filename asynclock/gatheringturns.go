// SPDX-License-Identifier: Apache-2.0

package asynclock

import "slices"

// begins notes that the keys are waited for.
func (g *sharedGathering) begins() {
	all := &g.client.gatherings
	all.mu.Lock()
	defer all.mu.Unlock()
	g.waits = true
}

// offer puts the lease into the channel of a future: of one that somebody receives from, or else of the one that came
// last. It looks at those that it has not been offered to before, and reports whether there are any.
func (g *sharedGathering) offer() (isNew bool) {
	all := &g.client.gatherings
	all.mu.Lock()
	defer all.mu.Unlock()
	g.waits, g.came = false, false
	select {
	case <-g.changed: // by those that it is offered to now
	default:
	}
	if isNew = g.offered < len(g.futures); !g.over {
		all.of[g.id] = g // a younger gathering for futures that never wait does not have the lease
	}
	g.offerLocked(g.offered)
	return isNew
}

// offerLocked looks at the futures from the first on.
func (g *sharedGathering) offerLocked(first int) {
	for i, f := range g.futures[first:] {
		results := f.pendingChannel()
		if results != nil && (g.layLocked(f, results) || !g.takeBackLocked()) {
			g.offered = max(g.offered, first+i+1)
			return
		}
	}
	g.offered = len(g.futures)
	for _, f := range slices.Backward(g.futures) {
		if results := f.pendingChannel(); results != nil {
			g.layLocked(f, results)
			return
		}
	}
	g.sweepLocked(len(g.futures)) // all are gone
	g.overLocked(gone)
}

// pendingChannel returns the channel of a future that somebody may receive from, or nil.
func (f *multiFuture) pendingChannel() chan MultiResult {
	if f == nil {
		return nil
	}
	return f.results.get()
}

// layLocked puts the lease into the channel of f. It reports whether somebody has received it at once.
func (g *sharedGathering) layLocked(f *multiFuture, results chan MultiResult) (received bool) {
	f.held, f.lease, f.waited = g.held, g.lease, f.waited || g.waited
	g.lying, g.channel = f, results
	results <- MultiResult{f}
	return len(results) == 0
}

// takeBackLocked takes the lease out of the channel. It reports whether it was still there.
func (g *sharedGathering) takeBackLocked() bool {
	select {
	case <-g.channel:
		g.lying.held, g.lying.lease = nil, nil
		g.lying, g.channel = nil, nil
		return true
	default:
		return false
	}
}

// nextTurn lets the lease lie with the future before, and after the first one with the last one again.
func (g *sharedGathering) nextTurn() {
	all := &g.client.gatherings
	all.mu.Lock()
	defer all.mu.Unlock()
	if g.lying == nil || g.pending == 1 || !g.takeBackLocked() {
		return
	}
	g.compactLocked()
	last := len(g.futures) - 1
	g.futures = slices.Insert(g.futures[:last], 0, g.futures[last])
	g.compactLocked()
	g.offerLocked(0)
}

// settled returns a channel that is closed when somebody has looked at the lease, or nil if it lies with nobody.
func (g *sharedGathering) settled() <-chan struct{} {
	all := &g.client.gatherings
	all.mu.Lock()
	defer all.mu.Unlock()
	if g.lying == nil {
		return nil
	}
	return g.lying.settled
}

// isReceived reports whether somebody has the lease.
func (g *sharedGathering) isReceived() bool {
	all := &g.client.gatherings
	all.mu.Lock()
	defer all.mu.Unlock()
	return g.lying != nil && len(g.channel) == 0
}

// isContested reports whether anybody else wants a key of the lease.
func (g *sharedGathering) isContested() bool {
	return slices.ContainsFunc(g.held, func(l *Lease) bool {
		sh := l.state.shard
		sh.mu.Lock()
		defer sh.mu.Unlock()
		return l.state.machine.IsContested(&l.core)
	})
}

// taken takes the lease back. If somebody has received it, it returns from which future. Came reports whether a future
// has come since the lease was offered, and left whether any are pending.
func (g *sharedGathering) taken() (receiver *multiFuture, came, left bool) {
	all := &g.client.gatherings
	all.mu.Lock()
	defer all.mu.Unlock()
	if g.lying != nil && !g.takeBackLocked() {
		receiver = g.lying
		g.lying, g.channel = nil, nil
		g.removeLocked(receiver)
	}
	if left = g.pending > 0; !left {
		g.overLocked(gone)
	}
	for _, f := range g.futures {
		if f != nil {
			f.waited = true
		}
	}
	return receiver, g.came, left
}
