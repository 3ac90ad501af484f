// SPDX-License-Identifier: Apache-2.0

package quorumstore

import (
	"slices"
	"sync"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// Doors of a claim that may keep all votes, and of one that may keep none.
const (
	anyNode = -1
	nowhere = -2
)

// A claim is one acquisition of a client: all its votes.
type claim struct {
	session *session
	key     string
	owner   string // its id above the nodes
	shown   string // its name on the nodes
	order   []int  // of the nodes, for this key

	turn chan struct{} // one request to acquire is served at a time: who sends into it

	mu       sync.Mutex
	votes    []*vote              // by node; nil: none
	request  store.AcquireRequest // the latest one
	leased   bool                 // a lease was handed out
	numbers                       // of the lease
	over     bool                 // there was a lease, and it has ended: it never revives
	door     int                  // the only node whose vote may be kept while waiting; or anyNode
	stalled  watchdog.Instant     // since when it has the door and no majority
	touched  watchdog.Instant     // when it was last requested
	renewing int                  // renewals that wait for answers
	releases []*release           // of its votes; nil until it is released
	watched  *vote                // somebody looks whether its node is stuck
	stuck    []int                // by node: 1 if it is no door; nil if all may be one
}

// lasts returns until when a majority of the votes counts: Q1. It is zero if none does. The mutex is held.
func (c *claim) lasts(now watchdog.Instant) watchdog.Instant {
	var ends []watchdog.Instant
	for _, v := range c.votes {
		if v != nil && v.live(now) && c.knows(&v.pace) {
			ends = append(ends, v.until)
		}
	}
	need := c.session.store.majority()
	if len(ends) < need {
		return 0
	}
	slices.Sort(ends)
	return ends[len(ends)-need]
}

// trusted reports whether there is a lease. It notes the end of one. The mutex is held.
func (c *claim) trusted(now watchdog.Instant) bool {
	if c.leased && c.lasts(now) == 0 {
		c.leased, c.over = false, true
	}
	return c.leased
}

func (c *claim) isTrusted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.trusted(watchdog.Refresh())
}

// granted counts the votes that are granted and live.
func (c *claim) granted() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := watchdog.Refresh()
	for _, v := range c.votes {
		if v != nil && v.live(now) {
			n++
		}
	}
	return n
}

// has reports whether the claim has a vote that is granted, as far as is known.
func (c *claim) has() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.votes, func(v *vote) bool { return v != nil && (v.offered || v.until != 0) })
}

func (c *claim) leave() { <-c.turn }

// giveBack ends all votes of a claim except that of one node. Only that one may be kept until the next request. It
// returns the ends of those that were granted.
func (c *claim) giveBack(door int) (granted []*release) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.door = door
	for i, v := range c.votes {
		if i != door && v != nil {
			c.endLocked(v)
			if v.release.live {
				granted = append(granted, v.release)
			}
		}
	}
	return granted
}

// endLocked ends one vote for good, as if it had never been there. The mutex is held.
func (c *claim) endLocked(v *vote) {
	if c.votes[v.node] == v {
		c.votes[v.node] = nil
	}
	v.end(&store.ReleaseRequest{Key: c.key, Token: c.token})
}

// next prepares the claim for a request to acquire. It gives back the rest of a lease that has ended, so that the claim may
// have another one. It reports false if the claim was released.
func (c *claim) next(r *store.AcquireRequest) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := watchdog.Now()
	if c.trusted(now); c.over {
		for _, v := range c.votes {
			if v != nil {
				c.endLocked(v)
			}
		}
	}
	c.over, c.request, c.door, c.touched = false, *r, anyNode, now
	return c.releases == nil
}

// idOn returns the id of the claim's vote on a node, or otherwise the other one. The claim may be nil.
func (c *claim) idOn(i int, other string) string {
	if c == nil {
		return other
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := c.votes[i]; v != nil {
		return v.id
	}
	return other
}

// isIdle reports whether nothing has become of the claim for long. The mutex is held.
func (c *claim) isIdle(now watchdog.Instant) bool {
	if len(c.turn) > 0 || now.Sub(c.touched) < idleFor+2*max(c.request.TTL, c.request.WaiterTTL) {
		return false
	}
	return !slices.ContainsFunc(c.votes, func(v *vote) bool { return v != nil && (v.live(now) || v.flying > 0) })
}
