// SPDX-License-Identifier: Apache-2.0

package quorumstore

import (
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

// doors returns the nodes in the order in which the claim chooses its door.
func (a *acquisition) doors() []int {
	a.claim.mu.Lock()
	defer a.claim.mu.Unlock()
	if a.stuck == anyNode {
		return a.order
	}
	doors := slices.DeleteFunc(slices.Clone(a.order), func(i int) bool { return i == a.stuck })
	return append(doors, a.stuck)
}

// watchDoor looks after the door of a claim that waits there, if nobody does.
func (a *acquisition) watchDoor(door int) {
	c := a.claim
	c.mu.Lock()
	defer c.mu.Unlock()
	pause := stuckAfter(c.request.TTL)
	if v := c.votes[door]; v != nil && !c.watched {
		c.watched = a.session.run(func() { c.lookAtDoor(v, pause) })
	}
}

// lookAtDoor looks for as long as the vote waits.
func (c *claim) lookAtDoor(v *vote, pause time.Duration) {
	s, last := c.session, ""
	for sleepUntil(s.stop, backoff.Jitter(pause, 0.2)) {
		if !v.isWaiting() {
			break
		}
		holder := s.aloneAt(v.node, c.key)
		if holder != "" && holder == last {
			c.mu.Lock()
			c.stuck = v.node
			c.mu.Unlock()
			s.notify(store.Event{Kind: store.EventWake, Owner: c.owner})
			break
		}
		last = holder
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watched = false
}

func (v *vote) isWaiting() bool {
	v.claim.mu.Lock()
	defer v.claim.mu.Unlock()
	return v.release == nil && v.until == 0
}

// aloneAt returns the claim that has a key on this node, if a majority has it free.
func (s *session) aloneAt(node int, key string) string {
	ctx, cancel := s.limit(seeLimit)
	defer cancel()
	seen, err := s.see(ctx, key)
	free := 0
	for _, one := range seen {
		if !one.Held {
			free++
		}
	}
	if err != nil || free < s.store.majority() {
		return ""
	}
	return claimOf(seen[node])
}
