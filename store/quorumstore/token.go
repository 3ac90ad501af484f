// SPDX-License-Identifier: Apache-2.0

package quorumstore

import (
	"context"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A lease's token is the largest of its votes (Q7). The next lease shares a node with this one, whose next token must be
// larger. The node has a smaller token of its own, so one of these must hold:
//
//   - It knows the token: it was written there, by a renewal.
//   - Its tokens follow its clock, and the token is ahead of the vote's own by less than half a TTL. If the vote expires
//     there, the clock has moved by a TTL. If it is released there, the release writes the token. Force raises a node's
//     counter by the rest of the TTL, and a lease is not trusted for the last tenth. A token that was written there says
//     nothing: it may be ahead of the clock.
//
// Inside a client, tokens rise with time if all votes allow that. Then the clocks themselves must not differ by more
// than a twentieth of the TTL. Whether they do is estimated from when the tokens were given.

// A pace is what is known of a vote's tokens.
type pace struct {
	own     int64            // its first token
	token   int64            // the largest that the node knows
	follows bool             // with its clock
	low     int64            // own, less our clock in microseconds when it was given: at least
	high    int64            // at most
	before  watchdog.Instant // the node had not given it yet
	ttl     time.Duration    // that of the grant
}

// begin notes the token of a vote that is granted.
func (p *pace) begin(g store.Grant, ttl time.Duration, now watchdog.Instant) {
	p.own, p.token, p.follows, p.ttl = g.Token, g.Token, g.TokensFollowClock, ttl
	p.low, p.high = g.Token-micros(now), g.Token-micros(p.before)
}

func micros(i watchdog.Instant) int64 { return int64(i) / int64(time.Microsecond) }

// numbers are those of a lease.
type numbers struct {
	token   int64 // 0: there is no lease
	clocked bool  // the client may use the tokens that become free with time
	used    int64 // the largest that the client has used
	high    int64 // as in pace
}

// knows reports whether the vote's node will give larger tokens than the lease's only.
func (n *numbers) knows(p *pace) bool {
	switch {
	case n.token == 0:
		return true
	case n.clocked:
		return p.follows && n.high-p.low <= int64(p.ttl/20/time.Microsecond)
	}
	return p.token >= n.token || p.follows && n.token-p.own <= int64(p.ttl/2/time.Microsecond)
}

// number gives the claim's lease its token. It reports whether a majority of nodes knows it, for which it may have to
// write it to them. The error is that of ctx.
func (s *session) number(ctx context.Context, c *claim) (bool, error) {
	unknowing, r := c.choose()
	err := gather(ctx, s, unknowing, func(i int) error { return s.renewOn(c, i, r, s.nodes[i].patience(r.TTL)).Err }, func(int, error) progress {
		if c.begin() {
			return settled
		}
		return undecided
	})
	return c.begin(), err
}

// choose takes a token. It returns the nodes that don't know it, if they are needed, and the request that writes it.
func (c *claim) choose() (unknowing []int, r *store.RenewRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := watchdog.Refresh()
	c.chooseLocked(now)
	if c.lasts(now) != 0 {
		return nil, nil
	}
	for _, v := range c.votes {
		if v != nil && v.live(now) && !c.knows(&v.pace) {
			unknowing = append(unknowing, v.node)
		}
	}
	return unknowing, &store.RenewRequest{
		Key: c.key, Owner: c.owner, TTL: c.request.TTL, Token: c.token, Description: c.request.Description,
	}
}

// chooseLocked takes the largest token of the votes, unless there is a lease. The mutex is held.
func (c *claim) chooseLocked(now watchdog.Instant) {
	if c.leased {
		return
	}
	c.numbers = numbers{clocked: true}
	for _, v := range c.votes {
		if v != nil && v.live(now) && v.token > c.token {
			c.token, c.high = v.token, v.high
		}
	}
	c.clocked = c.lasts(now) != 0
}

// begin begins the lease, if a majority of votes counts.
func (c *claim) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := watchdog.Refresh()
	c.chooseLocked(now) // there may be a vote with a larger one
	c.leased = c.leased || c.lasts(now) != 0
	return c.trusted(now)
}
