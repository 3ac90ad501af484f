// SPDX-License-Identifier: Apache-2.0

package quorumstore

import (
	"context"
	"errors"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// Renew extends all votes of each lease. It answers at the pace of a majority, and of the door if that is not much slower.
// A lost vote is asked for anew in the background.
func (s *session) Renew(ctx context.Context, batch []store.RenewRequest) []store.RenewReply {
	return each(ctx, s, batch, s.renew, func(err error) store.RenewReply { return store.RenewReply{Err: err} })
}

func (s *session) renew(ctx context.Context, q *store.RenewRequest) (reply store.RenewReply) {
	start, r := watchdog.Now(), *q // a late answer may need it
	c := s.find(r.Owner)
	if c == nil {
		return store.RenewReply{Err: s.lost(ctx, r.Key, nil)}
	}
	c.renewsFrom(&r)
	var failed error
	renewed, door, stolen := 0, false, false
	note := func(i int, one store.RenewReply) progress {
		door = door || i == c.order[0]
		switch {
		case one.Err == nil:
			renewed++
			reply.Waiters = max(reply.Waiters, one.Waiters)
		case errors.Is(one.Err, store.ErrLost):
			stolen = stolen || errors.Is(one.Err, store.ErrStolen)
		default:
			failed = one.Err
		}
		return s.store.progress(renewed, door)
	}
	err := gather(ctx, s, c.live(), func(i int) store.RenewReply {
		return s.renewOn(c, i, &r, max(r.TTL/5, s.nodes[i].patience(r.TTL)))
	}, note)
	rest, trusted := c.rest(s, start, r.TTL)
	switch {
	case err != nil:
		reply.Err = err
	case !trusted && stolen:
		reply.Err = store.ErrStolen
	case !trusted:
		reply.Err = s.lost(ctx, r.Key, c)
	case renewed < s.store.majority():
		reply.Err = unreachable(failed)
	case rest < r.TTL:
		reply.TTL = rest
	}
	return reply
}

// renewsFrom notes a renewal that begins.
func (c *claim) renewsFrom(r *store.RenewRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renewing++
	c.used = max(c.used, r.Token)
}

// rest returns how much of its TTL a lease has after a renewal that began at start, and whether it is trusted. The votes
// that it lacks are asked for anew.
func (c *claim) rest(s *session, start watchdog.Instant, ttl time.Duration) (rest time.Duration, trusted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := watchdog.Refresh()
	c.renewing--
	c.touched, c.request.TTL = now, ttl
	if !c.trusted(now) {
		return 0, false
	}
	for i, v := range c.votes {
		if (v == nil || v.until == 0 || v.dead(now)) && !s.nodes[i].absent() {
			s.run(func() { s.retake(c, i) })
		}
	}
	return c.lasts(now).Sub(start), true
}

// live returns the nodes where the claim has a vote.
func (c *claim) live() (nodes []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := watchdog.Refresh()
	for i, v := range c.votes {
		if v != nil && v.live(now) && v.release == nil {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// renewOn renews the vote on one node, and notes what the answer means for it. A vote that has ended is not renewed: a
// node that has forgotten everything would write it anew (Q2).
func (s *session) renewOn(c *claim, i int, r *store.RenewRequest, limit time.Duration) store.RenewReply {
	c.mu.Lock()
	v, now := c.votes[i], watchdog.Refresh()
	if v == nil || !v.live(now) || v.release != nil {
		c.mu.Unlock()
		return store.RenewReply{Err: store.ErrExpired}
	}
	v.sent(now)
	q := *r
	q.Owner, q.Token, q.Description = v.id, max(r.Token, c.token), s.store.describe(c.shown, v.shows, r.Description)
	c.mu.Unlock()
	ctx, cancel := s.limit(limit)
	defer cancel()
	sent := watchdog.Now()
	reply := s.nodes[i].Renew(ctx, []store.RenewRequest{q})[0]
	s.judge(i, sent, reply.Err, 0)
	v.renewed(&q, &reply, sent)
	return reply
}

// renewed notes the answer to a renewal.
func (v *vote) renewed(q *store.RenewRequest, reply *store.RenewReply, sent watchdog.Instant) {
	c := v.claim
	c.mu.Lock()
	defer c.mu.Unlock()
	now := watchdog.Refresh()
	lost := errors.Is(reply.Err, store.ErrLost)
	if lost {
		v.answered(nil)
	} else {
		v.answered(reply.Err)
	}
	switch {
	case v.release != nil:
	case lost, v.dead(now): // an answer revives nothing (Q2)
		c.endLocked(v)
		if c.trusted(now) && c.renewing == 0 { // its renewal has not waited for this
			c.session.run(func() { c.session.retake(c, v.node) })
		}
	case reply.Err == nil:
		v.extend(sent, ttlThatCounts(q.TTL, reply.TTL))
		v.token = max(v.token, q.Token)
	}
}
