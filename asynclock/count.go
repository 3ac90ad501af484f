// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"errors"
	"math/bits"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// Counts are plain numbers in each shard, under the mutex that a request holds anyway. So nothing contends for them.

// A counter is an index of counts.
type counter uint8

const (
	requested counter = iota
	refusedHeld
	refusedQueueFull
	refusedGrace
	refusedUnreachable
	refusedDenied
	refusedClosed
	refusedInvalid
	refusedOther
	givenUpTimeout
	givenUpCanceled
	givenUpForgotten
	endedUnlocked
	endedExpired
	endedNotRenewed
	endedStolen
	endedForced
	endedMaxHold
	endedOther
	endedClosed
	acquired // by the first way; the others follow
	counters = acquired + counter(machine.Ways)
)

// outcomeAcquired is the name of what a request has come to that has a lease.
const outcomeAcquired = "acquired"

// nameOf returns the name of a counter, which it also has in the JSON of [Stats].
func nameOf(i counter) string { return counterNames[i] }

var counterNames = [counters]string{
	requested:          "requested",
	refusedHeld:        "held",
	refusedQueueFull:   "queue_full",
	refusedGrace:       "grace",
	refusedUnreachable: "unreachable",
	refusedDenied:      "denied",
	refusedClosed:      "closed",
	refusedInvalid:     "invalid",
	refusedOther:       "other",
	givenUpTimeout:     "timeout",
	givenUpCanceled:    "canceled",
	givenUpForgotten:   "forgotten",
	endedUnlocked:      "unlocked",
	endedExpired:       "expired",
	endedNotRenewed:    "not_renewed",
	endedStolen:        "stolen",
	endedForced:        "forced",
	endedMaxHold:       "max_hold",
	endedOther:         "other",
	endedClosed:        "closed",

	acquired + counter(machine.WayAtOnce):     "at_once",
	acquired + counter(machine.WayQueued):     "queued",
	acquired + counter(machine.WayLocal):      "local",
	acquired + counter(machine.WayRetained):   "retained",
	acquired + counter(machine.WayJoined):     "joined",
	acquired + counter(machine.WayDowngraded): "downgraded",
}

// counts are of one kind of lease.
type counts [counters]int64

// shardCounts are the counts of one shard, or of all.
type shardCounts struct {
	of                  [Permits + 1]counts // by mode
	uses                [machine.Uses]int64 // keys, by what the client does with them
	renewed, notRenewed int64
	used                int64
	trust               trustLeft
}

// addTo adds the shard's counts to a sum.
func (sh *shard) addTo(sum *shardCounts) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for mode := range sum.of {
		for i := range sum.of[mode] {
			sum.of[mode][i] += sh.counts.of[mode][i]
		}
	}
	for i, n := range sh.counts.uses {
		sum.uses[i] += n
	}
	sum.used += int64(len(sh.keys))
	sum.renewed += sh.counts.renewed
	sum.notRenewed += sh.counts.notRenewed
	sum.trust.add(&sh.counts.trust, watchdog.Now())
}

// notCounted is the verdict of a waiter that does not count, or counts already. One for a part of several keys does not:
// these count as one.
const notCounted counter = 255

// countLocked counts what w has come to.
func (w *waiter) countLocked(i counter) {
	if w.verdict != notCounted {
		w.state.shard.counts.of[w.mode][i]++
	}
}

// countRefusedLocked counts that w was refused at once.
func (w *waiter) countRefusedLocked(sh *shard, err error) {
	if w.verdict != notCounted {
		n := &sh.counts.of[w.mode]
		n[requested]++
		n[outcomeOf(err)]++
	}
	w.verdict = notCounted
}

// countDecidedLocked counts what w has come to, and returns it. A call that has failed is counted by its caller, who knows
// why. The error of a context may be the application's, and is not asked anything under the mutex: see verdict.
func (w *waiter) countDecidedLocked() (outcome counter) {
	switch {
	case w.verdict == notCounted:
	case w.Stage == machine.Claimed:
		l := leaseOf(w.Lease)
		l.core.Counted = 1 + uint8(w.mode)
		outcome = acquired + counter(w.Way)
		w.countLocked(outcome)
		if l.core.Err != nil { // in the same step
			l.countEndLocked()
		}
	case w.Had: // it was received, and has ended before its caller looked
		outcome = acquired + counter(w.Way)
		w.countLocked(outcome)
		w.countLocked(endOf(w.Err))
	case w.Future:
		if outcome = w.verdict; outcome == 0 {
			outcome = outcomeOf(w.Err)
		}
		w.countLocked(outcome)
	}
	return outcome
}

// countEndLocked counts the end of a lease that a caller has had.
func (l *leaseCore) countEndLocked() {
	n := l.core.Counted // 1 more than the mode
	if n == 0 {
		return
	}
	end := endOf(l.core.Err)
	l.state.shard.counts.of[n-1][end]++
	if end == endedNotRenewed {
		l.state.shard.counts.trust.note(0, watchdog.Now())
	}
}

// countFailed counts a request that has failed. It may never have been queued.
func (c *Client) countFailed(w *waiter, key string, err error) {
	if !c.isUsable() || w.verdict == notCounted {
		return
	}
	outcome := w.verdict
	if outcome == 0 {
		outcome = outcomeOf(err)
	}
	sh := c.shardOf(c.spell(key))
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if w.state == nil {
		sh.counts.of[w.mode][requested]++
	}
	sh.counts.of[w.mode][outcome]++
}

// countStepLocked counts what a step says.
func (s *keyState) countStepLocked(st *machine.Step) {
	n := &s.shard.counts
	if st.Renewed+st.NotRenewed > 0 {
		n.renewed += int64(st.Renewed)
		n.notRenewed += int64(st.NotRenewed)
		n.trust.note(st.Left, st.Now)
	}
	use := s.machine.Use()
	if changed := use ^ s.machine.Counted; changed != 0 {
		for ; changed != 0; changed &= changed - 1 {
			i := bits.TrailingZeros8(uint8(changed))
			if use&(1<<i) != 0 {
				n.uses[i]++
			} else {
				n.uses[i]--
			}
		}
		s.machine.Counted = use
	}
}

// outcomeOf returns the counter of a request that has failed. The error of who gave up may also match what it waited for.
func outcomeOf(err error) counter {
	if _, is := err.(*HeldError); is { //nolint:errorlint // the most frequent one, and by itself
		return refusedHeld
	}
	for _, o := range outcomes {
		if errors.Is(err, o.err) {
			return o.counter
		}
	}
	return refusedOther
}

// outcomes are looked at in this order.
var outcomes = []struct {
	err     error
	counter counter
}{
	{context.DeadlineExceeded, givenUpTimeout},
	{context.Canceled, givenUpCanceled},
	{machine.ErrGone, givenUpForgotten},
	{ErrHeld, refusedHeld},
	{ErrQueueFull, refusedQueueFull},
	{ErrClosed, refusedClosed},
	{ErrGrace, refusedGrace},
	{ErrUnreachable, refusedUnreachable},
	{ErrOutcomeUnknown, refusedUnreachable},
	{ErrDenied, refusedDenied},
	{ErrInvalidKey, refusedInvalid},
	{ErrInvalidOption, refusedInvalid},
	{ErrReentry, refusedInvalid},
	{ErrLockOrder, refusedInvalid},
	{ErrPermits, refusedInvalid},
	{ErrUnsupported, refusedInvalid},
}

// endOf returns the counter of a lease that has ended.
func endOf(reason error) counter {
	if reason == ErrUnlocked { //nolint:errorlint // the most frequent one, and by itself
		return endedUnlocked
	}
	for _, e := range ends {
		if errors.Is(reason, e.err) {
			return e.counter
		}
	}
	return endedOther
}

var ends = []struct {
	err     error
	counter counter
}{
	{ErrUnlocked, endedUnlocked},
	{store.ErrForced, endedForced},
	{ErrStolen, endedStolen},
	{ErrMaxHold, endedMaxHold},
	{ErrNotRenewed, endedNotRenewed},
	{ErrExpired, endedExpired},
	{ErrClosed, endedClosed},
}

// severalCounts are the counts of leases over several keys. These belong to no shard.
type severalCounts struct {
	mu sync.Mutex // nothing else is locked under it
	counts
}

func (n *severalCounts) count(i counter) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counts[i]++
}

// countRequested counts a request for several keys.
func (a *gatherer) countRequested() {
	if a.client.isUsable() && !a.uncounted {
		a.client.several.count(requested)
	}
}

// countFailed counts that it has failed.
func (a *gatherer) countFailed(err error) {
	if a.client.isUsable() && !a.uncounted {
		a.client.several.count(outcomeOf(err))
	}
}

// countAcquired counts that its caller has all the keys.
func (a *gatherer) countAcquired() {
	way := machine.WayAtOnce
	if a.waited {
		way = machine.WayQueued
	}
	if a.asked != nil {
		a.asked.way, a.asked.had = way, true
	}
	a.client.several.count(acquired + counter(way))
}

// begin makes the lease its caller's.
func (a *gatherer) begin() {
	a.countAcquired()
	a.lease.begin(a.keys, a.held)
}

func (n *severalCounts) public() Acquisitions {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.counts.public()
}

// trustTime is how long the least trust is remembered, and up to twice as long.
const trustTime = 15 * time.Second

// trustLeft is how much trust was used up at most when a renewal was answered, in the present time and in the one before.
type trustLeft struct {
	number         int64   // of the present time
	used, previous float32 // 0: nothing was renewed
}

func (t *trustLeft) note(left float32, at watchdog.Instant) {
	t.moveTo(int64(at) / int64(trustTime))
	t.used = max(t.used, 1-left)
}

// moveTo makes the time with that number the present one.
func (t *trustLeft) moveTo(number int64) {
	switch number - t.number {
	case 0:
		return
	case 1:
		t.previous = t.used
	default:
		t.previous = 0
	}
	t.number, t.used = number, 0
}

// add adds what another remembers.
func (t *trustLeft) add(other *trustLeft, at watchdog.Instant) {
	o := *other
	o.moveTo(int64(at) / int64(trustTime))
	t.used = max(t.used, o.used, o.previous)
}

// A deafness knows the lanes whose notifications don't come through.
type deafness struct {
	mu    sync.Mutex // nothing else is locked under it
	all   bool
	lanes map[int]bool
}

// told handles that notifications don't come through, or do so again.
func (d *deafness) told(e *store.Event) {
	deaf := e.Kind == store.EventDisconnected
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case !e.OneLane:
		d.all = deaf
		clear(d.lanes)
	case deaf && d.lanes == nil:
		d.lanes = map[int]bool{e.Lane: true}
	case deaf:
		d.lanes[e.Lane] = true
	default:
		delete(d.lanes, e.Lane)
	}
}

func (d *deafness) isSo() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all || len(d.lanes) > 0
}
