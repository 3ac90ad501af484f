// SPDX-License-Identifier: Apache-2.0

package quorumstore

import (
	"cmp"
	"slices"
	"time"

	"github.com/asynclock/asynclock-go/internal/backoff"
	"github.com/asynclock/asynclock-go/store"
)

// A client that is cut off from the door of its key can't give it back there. So others would wait at the door for up to
// a TTL, although a majority is free. The first of them looks for that, and then does without the door. Another one may
// not have seen it, and may choose otherwise: as if the door did not answer some clients.

// stuckAfter is how long a door that is alone in being held may be so: a twentieth of the TTL.
func stuckAfter(ttl time.Duration) time.Duration { return max(ttl/20, 100*time.Millisecond) }

// doors returns the nodes in the order in which the claim chooses its door: those that are stuck come last.
func (a *acquisition) doors() []int {
	a.claim.mu.Lock()
	defer a.claim.mu.Unlock()
	if a.stuck == nil {
		return a.order
	}
	doors := slices.Clone(a.order)
	slices.SortStableFunc(doors, func(i, j int) int { return cmp.Compare(a.stuck[i], a.stuck[j]) })
	return doors
}

// watchDoor looks after the door of a claim that waits there, if nobody does.
func (a *acquisition) watchDoor(door int) {
	c := a.claim
	c.mu.Lock()
	defer c.mu.Unlock()
	pause := stuckAfter(c.request.TTL)
	if v := c.votes[door]; v != nil && c.watched != v && a.session.run(func() { c.lookAtDoor(v, pause) }) {
		c.watched = v
	}
}

// lookAtDoor looks for as long as the vote waits.
func (c *claim) lookAtDoor(v *vote, pause time.Duration) {
	s, last := c.session, ""
	for sleepUntil(s.stop, backoff.Jitter(pause, 0.2)) && c.waitsFor(v) {
		holder := s.aloneAt(v.node, c.key)
		if holder != "" && holder == last && c.doesWithout(v) {
			s.notify(store.Event{Kind: store.EventWake, Owner: c.owner})
			return
		}
		last = holder
	}
}

// waitsFor reports whether the claim still waits for a vote that is watched.
func (c *claim) waitsFor(v *vote) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	waits := v.release == nil && v.until == 0 && !v.offered && !c.leased && !c.over
	if !waits && c.watched == v {
		c.watched = nil
	}
	return waits
}

// doesWithout notes that the door of a vote is stuck, if the claim still waits for it.
func (c *claim) doesWithout(v *vote) bool {
	if !c.waitsFor(v) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stuck == nil {
		c.stuck = make([]int, len(c.votes))
	}
	c.stuck[v.node], c.watched = 1, nil
	return true
}

// aloneAt returns the claim that has a key on this node, if a majority has it free.
func (s *session) aloneAt(node int, key string) string {
	ctx, cancel := s.limit(seeLimit)
	defer cancel()
	seen, err := s.see(ctx, key)
	free := 0
	for i, one := range seen {
		if !one.Held && !s.nodes[i].absent() {
			free++
		}
	}
	if err != nil || free < s.store.majority() {
		return ""
	}
	return claimOf(seen[node])
}
