// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A MultiLease is one lease over several keys: see [Client.LockAll]. Any goroutine may use it, pass
// it on or unlock it.
//
// It ends as a whole, with the first of its parts that ends. [MultiLease.Err] then returns a
// [*PartError] that names the key and the reason. From then on the other parts are not renewed. They
// are not given back either, because the holder may still be at work. Unlock gives them back at once.
// Without Unlock their TTL does.
//
// It has what a [Lease] has, except for what is about one key. All parts are Exclusive. A note belongs to one key:
// write it with the Lease that [LeaseFrom] finds in [MultiLease.Context]. A downgrade or an unlock of that one ends the
// whole. It is a fence.Holders, so fences take the tokens of all keys at once.
type MultiLease struct {
	_ noCopy
	*multiCore

	keys  []string // sorted, each once
	parts []*Lease // in the order of keys; nil until LockAll has them all

	base  context.Context //nolint:containedctx // ends with the whole
	outer *leaseContext   // of the request; nil if none
	ctx   context.Context //nolint:containedctx // what Context returns
}

// A multiCore is what the client has of a MultiLease, as a leaseCore is of a Lease.
type multiCore struct {
	core   machine.Whole // over: err is not nil
	own    MultiLease
	cancel context.CancelCauseFunc
	leak   *multiLeak // nil if leaks are not detected

	mu       sync.Mutex // only what counts and hooks have is locked under it
	err      error      // why it ended
	fnCancel context.CancelCauseFunc
	release  *multiRelease // what Unlock began; nil if it was not called

	counts *severalCounts // in which its end counts; nil: no caller has it yet
	hold   *hold          // what hooks are told; nil: nothing
}

// newMultiLease makes a lease without parts. The values have no end, and no methods of the application
// are called when a context that is made from them ends.
func (a *gatherer) newMultiLease() *MultiLease {
	c := new(multiCore)
	c.core.Caller = c
	c.core.Gathering.Store(true)
	m := &c.own
	if leaks := a.client.leaks; leaks != nil {
		m = new(MultiLease)
		m.base, c.cancel, c.leak = leaks.newMultiLeak(a.values)
	} else {
		m.base, c.cancel = context.WithCancelCause(a.values)
	}
	m.multiCore, m.outer = c, a.outer
	return m
}

// wholeOf returns the lease that the machine knows as w.
func wholeOf(w *machine.Whole) *multiCore {
	return w.Caller.(*multiCore) //nolint:forcetypeassert // newMultiLease has put it there
}

// adopt makes l a part that no caller has yet. It is renewed, and its maximum hold does not count.
func (m *MultiLease) adopt(l *Lease) {
	s := l.state
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	if !s.machine.Adopt(&l.core, &m.core) {
		m.end(&PartError{Key: s.machine.Name, Err: l.core.Err})
	}
	s.setAlarmLocked()
}

// leaveWhole makes l a lease that is no part, and that nobody has held.
func (l *Lease) leaveWhole() {
	sh := l.state.shard
	sh.mu.Lock()
	defer sh.mu.Unlock()
	l.core.Disown()
}

// hasEnded reports whether the lease has ended, as far as the client has noticed.
func (l *Lease) hasEnded() bool {
	sh := l.state.shard
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return l.core.Err != nil
}

// begin makes the lease its caller's. The bounds of all parts count from the same moment.
func (m *MultiLease) begin(keys []string, parts []*Lease) {
	m.keys, m.parts = keys, parts
	m.leak.has(parts)
	m.core.Gathering.Store(false)
	m.ctx = m.contextOver(m.base, m.cancel)
	now := watchdog.Now()
	for _, l := range parts {
		l.count(now)
	}
	m.countIn(&m.client().several)
}

// countIn counts the end of the lease, which a caller has from now on.
func (m *multiCore) countIn(counts *severalCounts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts = counts; m.err != nil { // it has just ended
		counts.count(endOf(m.err))
	}
}

// count lets the bounds of a part count from now.
func (l *Lease) count(now watchdog.Instant) {
	s := l.state
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	s.machine.Count(&l.core, now)
	s.setAlarmLocked()
}

// contextOver makes a context under which each part is joined by requests for its key.
func (m *MultiLease) contextOver(ctx context.Context, cancel context.CancelCauseFunc) *leaseContext {
	under := m.outer
	made := make([]leaseContext, len(m.parts))
	for i, l := range m.parts {
		made[i].Context, made[i].lease, made[i].outer, made[i].cancel = ctx, l, under, cancel //nolint:fatcontext // each has the same
		under = &made[i]
	}
	return under
}

// end ends the lease with a reason, and reports whether it had not ended before. It may be called under the mutex of a
// shard.
func (m *multiCore) end(reason error) bool {
	m.mu.Lock()
	if m.err != nil {
		m.mu.Unlock()
		return false
	}
	m.err = reason
	m.counts.count(endOf(reason))
	m.core.Over.Store(true)
	fnCancel := m.fnCancel
	if h := m.hold; h != nil {
		if h.ends(reason); reason != ErrUnlocked { //nolint:errorlint // that of the whole: whoever has unlocked it tells
			h.hooks.later(h.tell)
		}
	}
	m.mu.Unlock()
	m.cancel(reason)
	m.leak.ended()
	if fnCancel != nil {
		fnCancel(reason)
	}
	return true
}

// isNone reports whether m is nil or the zero MultiLease.
func (m *MultiLease) isNone() bool { return m == nil || m.parts == nil }

// Keys returns the keys, sorted by their bytes, each once.
func (m *MultiLease) Keys() []string {
	if m.isNone() {
		return nil
	}
	return slices.Clone(m.keys)
}

// Token returns the fencing token of one key's lease: see [Lease.Token]. It is 0 for a key that is
// not one of [MultiLease.Keys].
func (m *MultiLease) Token(key string) int64 {
	if m.isNone() {
		return 0
	}
	i, found := slices.BinarySearch(m.keys, m.client().spell(key))
	if !found {
		return 0
	}
	return m.parts[i].core.Token
}

// Tokens returns the fencing token of each key's lease.
func (m *MultiLease) Tokens() map[string]int64 {
	if m.isNone() {
		return nil
	}
	tokens := make(map[string]int64, len(m.keys))
	for i, key := range m.keys {
		tokens[key] = m.parts[i].core.Token
	}
	return tokens
}

// Context returns a context that ends when the lease ends, with [MultiLease.Err] as its cause. It
// has the values of the context that the keys were requested with, but neither its end nor its
// deadline. A request for one of the keys with this context fails with [ErrReentry], or joins the lease of that key
// with [WithReentry](true).
// [LeaseFrom] returns the lease of one key. If that one is unlocked by itself, the whole ends. Its own
// context knows the lease of that key only, so make others from this one.
func (m *MultiLease) Context() context.Context {
	if m.isNone() {
		return (*Lease)(nil).Context()
	}
	return m.ctx
}

// Done returns a channel that is closed when the lease ends. It is the same as Context().Done().
func (m *MultiLease) Done() <-chan struct{} { return doneOfCaller(m.Context()) }

// Err returns nil while the lease lasts. Afterwards it always returns the reason of the end:
// [ErrUnlocked], or a [*PartError] that matches [ErrLost] or [ErrClosed]. It matches ErrUnlocked if the
// part was unlocked by itself.
func (m *MultiLease) Err() error {
	if m.isNone() {
		return errNoLease
	}
	m.Valid(0)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// Deadline returns the earliest trust deadline of the parts: see [Lease.Deadline].
func (m *MultiLease) Deadline() time.Time {
	if m.isNone() {
		return time.Time{}
	}
	earliest := m.parts[0].Deadline()
	for _, l := range m.parts[1:] {
		if at := l.Deadline(); at.Before(earliest) {
			earliest = at
		}
	}
	return earliest
}

// Valid reports whether the lease has not ended and each part will last for margin more without
// renewal: see [Lease.Valid].
func (m *MultiLease) Valid(margin time.Duration) bool {
	if m.isNone() || m.core.Over.Load() {
		return false
	}
	valid := true
	for _, l := range m.parts {
		lasts, _ := l.check(margin)
		valid = valid && lasts
	}
	return valid && !m.core.Over.Load()
}

// scope returns ctx, made to end with the lease as well.
func (m *MultiLease) scope(ctx context.Context) (context.Context, context.CancelFunc) {
	m.mu.Lock()
	ctx = m.hold.values(ctx)
	m.mu.Unlock()
	between, cancel := context.WithCancel(ctx) // why: see Lease.scope
	ended, end := context.WithCancelCause(between)
	scoped := m.contextOver(ended, end)
	m.mu.Lock()
	m.fnCancel = end
	err := m.err
	m.mu.Unlock()
	if err != nil {
		end(err)
	}
	return scoped, cancel
}

// Renew extends each part to ttl from now, with or without the watchdog: see [Lease.Renew]. All renewals go in
// one call to the store, or in one for each of the store's lanes.
//
// If the lease has ended, or turns out to be lost, the error is the lease's. Otherwise it joins those of the
// parts that were not renewed. Each is an [*Error] with its key. Those parts last as long as before, and the
// others are renewed.
func (m *MultiLease) Renew(ctx context.Context, ttl time.Duration) error {
	if m.isNone() {
		return &Error{Op: "renew all", Err: errNoLease}
	}
	if ctx == nil {
		return &Error{Op: "renew all", Err: errNilContext}
	}
	if err := checkTTL(ttl); err != nil {
		return &Error{Op: "renew all", Err: err}
	}
	if err := m.Err(); err != nil {
		return &Error{Op: "renew all", Err: err}
	}
	errs := m.renewParts(ctx, ttl)
	if err := m.Err(); err != nil {
		return &Error{Op: "renew all", Err: err}
	}
	return errors.Join(errs...)
}

// renewParts sends a renewal of each part, and returns an error or nil for each.
func (m *MultiLease) renewParts(ctx context.Context, ttl time.Duration) []error {
	type together struct {
		calls  []*machine.Renewal
		places []int
	}
	client := m.parts[0].state.shard.client
	errs := make([]error, len(m.parts))
	lanes := make(map[int]*together, 1)
	for i, l := range m.parts {
		call, err := l.renewal(ttl)
		if err != nil {
			errs[i] = &Error{"renew all", m.keys[i], err} // the whole has just ended
			continue
		}
		lane := client.session.Lane(m.keys[i])
		if lanes[lane] == nil {
			lanes[lane] = new(together)
		}
		lanes[lane].calls, lanes[lane].places = append(lanes[lane].calls, call), append(lanes[lane].places, i)
	}
	var flying sync.WaitGroup
	for _, t := range lanes {
		flying.Go(func() { // ends with the call; the caller waits for it
			for n, err := range client.renewNow(ctx, false, t.calls) {
				if i := t.places[n]; err != nil {
					errs[i] = &Error{"renew all", m.keys[i], err}
				}
			}
		})
	}
	flying.Wait()
	return errs
}
