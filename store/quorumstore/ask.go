// SPDX-License-Identifier: Apache-2.0

package quorumstore

import (
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// ask sends a claim's request to one node, and notes what the answer means for the vote. The answer is that of the node,
// as the claim's client may see it.
func (s *session) ask(c *claim, i int, wait bool) store.AcquireReply {
	v, r, landed := s.prepare(c, i, wait)
	for landed != nil { // or answers would overtake each other
		<-landed
		v, r, landed = s.prepare(c, i, wait)
	}
	if v == nil {
		return store.AcquireReply{Err: store.ErrUnreachable} // the claim has ended
	}
	ctx, cancel := s.limit(s.nodes[i].patience(r.TTL))
	defer cancel()
	sent := watchdog.Now()
	reply := s.nodes[i].Acquire(ctx, []store.AcquireRequest{r})[0]
	s.judge(i, sent, reply.Err, reply.Grace)
	holder := ""
	if reply.Err == nil && (reply.Status == store.Held || reply.Status == store.Waiting) {
		holder, reply.Holder, reply.Err = s.store.meet(i, reply.Holder)
	}
	c.note(v, &r, &reply, sent, holder)
	reply.HolderToken, reply.Mark = 0, 0 // those of one node
	return reply
}

// prepare returns the vote for which a node is asked, which may be a new one, and the request. The vote is nil if the claim
// has ended. If another request is on its way, landed is closed when that is over.
func (s *session) prepare(c *claim, i int, wait bool) (v *vote, r store.AcquireRequest, landed chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := watchdog.Refresh()
	v = c.votes[i]
	if v != nil && v.dead(now) {
		c.endLocked(v)
		v = nil
	}
	switch {
	case c.releases != nil, c.over:
		return nil, r, nil
	case v != nil && v.flying > 0:
		return nil, r, v.landing()
	case v == nil:
		v = &vote{claim: c, node: i}
		if c.leased {
			v.shows = max(c.token, c.used)
		}
		v.id = s.newID(c.owner, v)
		c.votes[i] = v
	}
	v.sent(now)
	r = c.request
	r.Owner, r.Wait = v.id, wait || v.ticket != 0 // who has a place keeps it
	if i != c.order[0] || v.ticket != 0 {
		r.Ticket = v.ticket
	}
	r.Description = s.store.describe(c.shown, v.shows, r.Description)
	if i != c.order[0] {
		r.QueueLimit = 0
	}
	return v, r, nil
}

// note notes what an answer means for a vote.
func (c *claim) note(v *vote, r *store.AcquireRequest, reply *store.AcquireReply, sent watchdog.Instant, holder string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := watchdog.Refresh()
	if reply.Err != nil {
		v.answered(reply.Err)
		return
	}
	v.answered(nil)
	switch {
	case v.release != nil, v.dead(now): // it has ended meanwhile: an answer changes nothing
	case reply.Status == store.Granted:
		late := c.leased && !c.trusted(now) // Q3
		v.granted(sent, now, r, reply)
		switch {
		case late || c.over || c.door != anyNode && c.door != v.node:
			c.endLocked(v)
		case c.leased && v.own > c.token && v.shows == 0 && reply.Waiters == 0:
			// The node would show another token than the lease has. If others waited there, it would be theirs now.
			c.endLocked(v)
			c.session.run(func() { c.session.retake(c, v.node) })
		}
	case v.until != 0: // it was lost
		c.endLocked(v)
	case reply.Status == store.Waiting:
		v.waits(sent, reply.Ticket, holder)
		if c.door != anyNode && c.door != v.node {
			c.endLocked(v)
		}
	case v.doubt || v.ticket != 0:
		c.endLocked(v)
	default: // nothing is left of it
		c.votes[v.node] = nil
		c.session.forgetVote(v)
	}
}

// retake asks a node for a vote beside those of a lease, and queues for it. It may only become one while a majority is
// trusted (Q3).
func (s *session) retake(c *claim, i int) {
	c.mu.Lock()
	may := c.trusted(watchdog.Refresh())
	c.mu.Unlock()
	if may {
		s.ask(c, i, true)
	}
}
