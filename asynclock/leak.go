// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/watchdog"
)

// Leak detection. A lease that no caller can reach is found by the garbage collector. So the client itself must not
// refer to what callers have. With detection each caller has a Lease of its own, which refers to the client's leaseCore,
// and has a context of its own, which refers to the client's. Contexts made from that one keep it, by the list of its
// children in the client's context. A channel of Done keeps nothing. So each one is watched by itself.
//
// The collector calls cleanups on a goroutine of its own, outside of any bubble of testing/synctest. They only add to a
// list. The watchdog looks at that.

// leakLook is how often the client looks which leases were forgotten.
const leakLook = time.Second

// A leakDetector finds the leases that were forgotten.
type leakDetector struct {
	client *Client
	entry  watchdog.Entry

	mu     sync.Mutex // nothing but the watchdog's is locked under it
	leases map[*leaseCore]*leak
	lost   []*leak // whose caller's Lease the collector has taken; looked at by Fire
}

func newLeakDetector(c *Client) *leakDetector {
	d := &leakDetector{client: c, leases: make(map[*leaseCore]*leak)}
	d.entry.Task = d
	return d
}

// A leak is what the detector knows of a lease that lasts. It does not refer to the caller's Lease.
type leak struct {
	detector *leakDetector
	lease    *leaseCore
	callers  []uintptr // of the call that requested it
	since    watchdog.Instant

	// All below is guarded by the detector's mutex.

	whole *multiLeak // that it is a part of; nil if none
	done  doneChan
	over  bool // it has ended, or was told of
}

// A multiLeak is what the detector knows of a MultiLease.
type multiLeak struct {
	detector *leakDetector

	// All below is guarded by the detector's mutex.

	keys int
	done doneChan
	told bool
}

// An origin is what a waiter knows of its call.
type origin struct {
	callers []uintptr
	lease   *Lease // the caller's; nil if it has none
	asked   *asked // nil if there are no hooks, or it is for one of several keys
}

// origin returns that of the present call, or nil if leaks are not detected.
func (d *leakDetector) origin() *origin {
	if d == nil {
		return nil
	}
	return &origin{callers: callers()}
}

// again returns the origin of another waiter of the same call.
func (o *origin) again() *origin {
	if o == nil {
		return nil
	}
	return &origin{callers: o.callers}
}

// handleOf returns the Lease of w's caller, which has it. It is called under the shard's mutex.
func (d *leakDetector) handleOf(l *leaseCore, w *waiter) *Lease {
	o := w.origin
	if o.lease != nil && o.lease.leaseCore == l {
		return o.lease
	}
	o.lease = &Lease{leaseCore: l, context: w.ctx}
	if l.core.Err != nil {
		return o.lease
	}
	k := &leak{detector: d, lease: l, callers: o.callers, since: watchdog.Now()}
	d.add(k)
	if l.core.Terms.Renew { // others end by themselves
		runtime.AddCleanup(o.lease, (*leak).unreachable, k)
	}
	return o.lease
}

// requestedBy makes the lease that of another call, whose context it has not been asked for yet.
func (l *Lease) requestedBy(ctx context.Context, o *origin) {
	sh := l.state.shard
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if l.madeLocked() == nil {
		l.context = ctx
	}
	if d := sh.client.leaks; d != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		if k := d.leases[l.leaseCore]; k != nil {
			k.callers = o.callers
		}
	}
}

func (d *leakDetector) add(k *leak) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.leases[k.lease] = k; len(d.leases) == 1 {
		d.client.watchdog.Set(&d.entry, k.since.Add(leakLook))
	}
}

// unreachable is called by the collector.
func (k *leak) unreachable() {
	k.detector.mu.Lock()
	defer k.detector.mu.Unlock()
	if !k.over {
		k.detector.lost = append(k.detector.lost, k)
	}
}

// ended forgets a lease that has ended.
func (d *leakDetector) ended(l *leaseCore) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.leases[l]; k != nil {
		k.over = true
		k.done.close()
		delete(d.leases, l)
	}
}

// has makes the leases parts of m.
func (m *multiLeak) has(parts []*Lease) {
	if m == nil {
		return
	}
	m.detector.mu.Lock()
	defer m.detector.mu.Unlock()
	m.keys = len(parts)
	for _, l := range parts {
		if k := m.detector.leases[l.leaseCore]; k != nil {
			k.whole = m
		}
	}
}

func (m *multiLeak) ended() {
	if m == nil {
		return
	}
	m.detector.mu.Lock()
	defer m.detector.mu.Unlock()
	m.done.close()
}

// Fire logs which leases were forgotten. It runs on the watchdog's goroutine.
func (d *leakDetector) Fire(now watchdog.Instant) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var watched []*leak
	for _, k := range d.lost {
		switch {
		case k.over:
		case k.isWatched():
			watched = append(watched, k)
		default:
			k.over = true
			k.tell(now)
		}
	}
	if d.lost = watched; len(d.leases) > 0 {
		d.client.watchdog.Set(&d.entry, now.Add(leakLook))
	}
}

// isWatched reports whether anybody may still wait for the end of the lease.
func (k *leak) isWatched() bool {
	return k.done.isHeld() || k.whole != nil && k.whole.done.isHeld()
}

// tell logs that the lease was forgotten. The place is in the message, so that the default log does not take two places
// for a repetition.
func (k *leak) tell(now watchdog.Instant) {
	attrs := []slog.Attr{
		slog.String("key", k.lease.own.Key()), slog.Int64("token", k.lease.core.Token), slog.Duration("age", now.Sub(k.since)),
	}
	if k.whole != nil {
		if k.whole.told {
			return
		}
		k.whole.told = true
		attrs = append(attrs, slog.Int("keys", k.whole.keys))
	}
	k.detector.client.log.Add(slog.LevelWarn, "a lease was forgotten: nobody can unlock it any more. It was taken at "+siteOf(k.callers), attrs...)
}

// A doneChan is a channel that a caller has of Done. It is referred to weakly, as the channel of a future is.
type doneChan struct {
	to   weakChan[struct{}]
	over bool
}

// isHeld reports whether there is such a channel.
func (c *doneChan) isHeld() bool { return c.to.get() != nil }

func (c *doneChan) close() {
	if done := c.to.get(); done != nil && !c.over {
		close(done)
	}
	c.over = true
}

// A watchedContext is the caller's side of a context that ends with a lease. The client has only the inner one.
type watchedContext struct {
	context.Context //nolint:containedctx // the inner one, which has the end

	values   context.Context //nolint:containedctx // of the request
	detector *leakDetector
	watched  *doneChan
	done     chan struct{} // guarded by the detector's mutex; nil: nobody has asked for it
}

// newWatchedContext makes the context of a lease whose caller is watched.
func (l *Lease) newWatchedContext(values context.Context) *leaseContext {
	inner, d := l.own.leaseContext(), l.state.shard.client.leaks
	watched := &watchedContext{Context: inner, values: values, detector: d, watched: d.doneOf(l.leaseCore)}
	return &leaseContext{Context: watched, lease: l, outer: leaseContextOf(values), cancel: inner.cancel}
}

// newMultiLeak makes the context of a MultiLease, with the function that ends it.
func (d *leakDetector) newMultiLeak(values context.Context) (context.Context, context.CancelCauseFunc, *multiLeak) {
	inner, cancel := context.WithCancelCause(context.Background())
	m := &multiLeak{detector: d}
	return &watchedContext{Context: inner, values: values, detector: d, watched: &m.done}, cancel, m
}

// doneOf returns where to put the channel of a lease.
func (d *leakDetector) doneOf(l *leaseCore) *doneChan {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.leases[l]; k != nil {
		return &k.done
	}
	return &doneChan{over: true}
}

// Value has what the inner context knows of its end, and the values of the request.
func (c *watchedContext) Value(key any) any {
	if v := c.Context.Value(key); v != nil && key != (innermost{}) {
		return v
	}
	return c.values.Value(key)
}

// Done returns the inner context's channel to this package, and to package context, which makes contexts of it. Any other
// caller may keep the channel alone, so it gets one that is watched.
func (c *watchedContext) Done() <-chan struct{} {
	pcs := make([]uintptr, 1)
	caller, _ := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)]).Next()
	if isOurs(caller.Function) || strings.HasPrefix(caller.Function, "context.") {
		return c.Context.Done()
	}
	return c.callersDone()
}

// callersDone returns the channel that is watched.
func (c *watchedContext) callersDone() <-chan struct{} {
	c.detector.mu.Lock()
	defer c.detector.mu.Unlock()
	if c.done == nil {
		c.done = c.watched.to.get() // of a copy of the lease
	}
	if c.done == nil {
		c.done = make(chan struct{})
		if c.watched.to = weaklyTo(c.done); c.watched.over {
			close(c.done)
		}
	}
	return c.done
}

// doneOfCaller returns ctx.Done(), for a caller outside of this package.
func doneOfCaller(ctx context.Context) <-chan struct{} {
	if of, ok := ctx.(*leaseContext); ok {
		if watched, ok := of.Context.(*watchedContext); ok {
			return watched.callersDone()
		}
	}
	return ctx.Done()
}
