// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// A fault is something that can be broken, and mended.
type fault struct {
	name string
	lane lane
	// lossy: the server may lose what it acknowledged, and its grace does not make
	// up for that.
	lossy bool
	// forgets: the server may lose what nobody holds, as notes, for which there is no grace.
	forgets bool
	// moves: for a while the server may count no receiver of messages to a client that it can reach, or that
	// believes so. Then it lets others pass that client's waiters.
	moves bool
	// rare: only if it is asked for by name.
	rare bool
	// only: the kinds of sites where it can be had; all, if there are none.
	only []string
	// strike breaks something, waits, and mends it. It notes whom it hits.
	strike func(*blow) error
}

// turnsClock: it takes a clock of the servers' own.
func (f fault) turnsClock() bool { return strings.HasPrefix(f.name, "clock") }

// A lane is what faults have in common that can't be there at once. Faults of
// different lanes coincide at random.
type lane int

const (
	processes lane = iota // of workers
	network
	storage // the servers that keep the locks
	lanes
)

// A blow is one striking of a fault.
type blow struct {
	*run

	// ctx ends with the time for strikes; then a blow mends at once.
	ctx    context.Context //nolint:containedctx // the call that strikes has no other arguments
	rand   *rand.Rand
	record *history.Record
}

// wait waits for a time, or for the end of the run.
func (b *blow) wait(d time.Duration) {
	select {
	case <-time.After(d):
	case <-b.ctx.Done():
	}
}

// short is a time that leases of the longest TTL survive, and long one that they
// don't.
func (b *blow) short() time.Duration { return b.between(1, 50) }
func (b *blow) long() time.Duration  { return b.between(100, 250) }

// between returns a time between two percentages of the longest TTL.
func (b *blow) between(low, high int64) time.Duration {
	return b.longestTTL() / 100 * time.Duration(low+b.rand.Int64N(high-low))
}

func (b *blow) hit(whom string) { b.record.Whom = whom }

// faults are all there are. docs/chaos.md describes them; their order is part of
// what a seed means.
var faults = []fault{
	{name: "worker killed", lane: processes, strike: (*blow).killWorker},
	{name: "worker paused", lane: processes, strike: func(b *blow) error { return b.pauseWorker(b.short()) }},
	{name: "worker paused beyond the TTL", lane: processes, strike: func(b *blow) error { return b.pauseWorker(b.long()) }},

	{name: "slow requests", lane: network, strike: func(b *blow) error {
		d := b.between(2, 30)
		return b.storm(func(w *weather) { w.up = d })
	}},
	{name: "slow replies", lane: network, strike: func(b *blow) error {
		d := b.between(2, 30)
		return b.storm(func(w *weather) { w.down = d })
	}},
	{name: "late messages", lane: network, strike: func(b *blow) error {
		d := b.between(10, 100)
		return b.storm(func(w *weather) { w.messages = d })
	}},
	{name: "messages lost", lane: network, strike: func(b *blow) error { return b.storm(func(w *weather) { w.mute = true }) }},
	{name: "requests vanish", lane: network, strike: func(b *blow) error { return b.storm(func(w *weather) { w.holeUp = true }) }},
	{name: "replies vanish", lane: network, strike: func(b *blow) error { return b.storm(func(w *weather) { w.holeDown = true }) }},
	{name: "replies lost after the request went through", lane: network, strike: func(b *blow) error {
		return b.storm(func(w *weather) { w.loseReply = true })
	}},
	{name: "connections refused", lane: network, moves: true, strike: (*blow).refuse},

	{name: "server paused", lane: storage, strike: func(b *blow) error { return b.pauseServer(b.short()) }},
	{name: "server paused beyond the TTL", lane: storage, strike: func(b *blow) error { return b.pauseServer(b.long()) }},
	{name: "server killed, back with its data", lane: storage, moves: true, only: []string{standalone}, strike: func(b *blow) error { return b.restart(false) }},
	{name: "server killed, back empty", lane: storage, moves: true, forgets: true, only: []string{standalone}, strike: func(b *blow) error { return b.restart(true) }},
	{name: "SCRIPT FLUSH", lane: storage, strike: func(b *blow) error { return b.command("SCRIPT", "FLUSH") }},
	{name: "CLIENT KILL TYPE normal", lane: storage, moves: true, strike: func(b *blow) error { return b.command("CLIENT", "KILL", "TYPE", "normal") }},
	{name: "CLIENT KILL TYPE pubsub", lane: storage, moves: true, strike: func(b *blow) error { return b.command("CLIENT", "KILL", "TYPE", "pubsub") }},
	{name: "CLIENT PAUSE", lane: storage, strike: (*blow).pauseClients},
	{name: "DEBUG SLEEP", lane: storage, strike: func(b *blow) error {
		return b.command("DEBUG", "SLEEP", fmt.Sprintf("%.3f", b.between(1, 120).Seconds()))
	}},
	{name: "FLUSHALL", lane: storage, lossy: true, strike: func(b *blow) error { return b.command("FLUSHALL") }},
	{name: "out of memory", lane: storage, strike: (*blow).exhaust},
	{name: "foreign write", lane: storage, strike: (*blow).scribble},
	// Coincidences that are too rare to wait for.
	{name: "worker paused, its messages later still", lane: processes, rare: true, strike: (*blow).outrun},
	{name: "slow replies, with a rival for each key", lane: network, rare: true, strike: (*blow).overstay},
	{name: "failover", lane: storage, moves: true, only: []string{sentinel}, lossy: true, strike: (*blow).failOver},
	{name: "failover in agreement", lane: storage, moves: true, only: []string{cluster}, strike: func(b *blow) error { return b.takeOver() }},
	{name: "failover without agreement", lane: storage, moves: true, only: []string{cluster}, lossy: true, strike: func(b *blow) error { return b.takeOver("TAKEOVER") }},
	{name: "slot moved", lane: storage, moves: true, only: []string{cluster}, strike: (*blow).moveSlot},
	{name: "clock set back", lane: storage, strike: (*blow).turnBack},
	// Leases end early then, which is not promised against.
	{name: "clock set forward", lane: storage, lossy: true, strike: (*blow).turnForward},
	{name: "a long script", lane: storage, moves: true, strike: (*blow).runScript},
	{name: "replica of nobody", lane: storage, moves: true, only: []string{standalone}, strike: (*blow).followNobody},
	{name: "restart with much to read", lane: storage, moves: true, only: []string{standalone}, strike: (*blow).restartSlowly},
	// One at a time, because several minorities are a majority.
	{name: "minority back empty", lane: storage, forgets: true, only: []string{quorum}, strike: func(b *blow) error { return b.loseMinority(b.between(0, 10)) }},
	{name: "minority down", lane: storage, forgets: true, only: []string{quorum}, strike: func(b *blow) error { return b.loseMinority(b.between(50, 250)) }},
	{name: "minority paused", lane: storage, only: []string{quorum}, strike: func(b *blow) error { return b.pauseAll(b.minority(), b.between(5, 200)) }},
	{name: "minority cut off", lane: storage, only: []string{quorum}, strike: func(b *blow) error {
		return b.cut(b.minority(), b.Workers, weather{holeUp: true, holeDown: true})
	}},
	{name: "minority cut off from half", lane: storage, only: []string{quorum}, strike: func(b *blow) error {
		return b.cut(b.minority(), b.Workers/2, weather{holeUp: true, holeDown: true})
	}},
	{name: "minority late", lane: storage, only: []string{quorum}, strike: func(b *blow) error {
		return b.cut(b.minority(), b.Workers, b.late())
	}},
	{name: "minority late for half", lane: storage, only: []string{quorum}, strike: func(b *blow) error {
		return b.cut(b.minority(), b.Workers/2, b.late())
	}},
	{name: "majority down", lane: storage, forgets: true, only: []string{quorum}, strike: (*blow).loseMajority},
	{name: "majority paused", lane: storage, only: []string{quorum}, strike: func(b *blow) error {
		return b.thenRest(b.pauseAll(b.majority(), b.between(50, 200)))
	}},
	{name: "majority cut off", lane: storage, only: []string{quorum}, strike: func(b *blow) error {
		return b.thenRest(b.cut(b.majority(), b.Workers, weather{holeUp: true, holeDown: true}))
	}},
}

// faultsNamed returns the faults with these names.
func faultsNamed(names []string) (some []fault, err error) {
	for _, name := range names {
		i := slices.IndexFunc(faults, func(f fault) bool { return f.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no fault %q", name)
		}
		some = append(some, faults[i])
	}
	return some, nil
}

// faultsAt returns all faults that a site can have, except the rare ones. Faults of the servers of a quorum are
// counted by servers.
func faultsAt(site string) (some []fault) {
	for _, f := range faults {
		anywhere := len(f.only) == 0 && (site != quorum || f.lane != storage)
		if !f.rare && (anywhere || slices.Contains(f.only, site)) {
			some = append(some, f)
		}
	}
	return some
}
