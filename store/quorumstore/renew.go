// SPDX-License-Identifier: Apache-2.0

package quorumstore

import (
	"context"
	"errors"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// Renew extends the votes of all leases in a call to each node. It answers at the pace of a majority, and of the door if
// that is not much slower. A lost vote is asked for anew in the background.
func (s *session) Renew(ctx context.Context, batch []store.RenewRequest) []store.RenewReply {
	replies := make([]store.RenewReply, len(batch))
	if err := s.usable(ctx); err != nil {
		for i := range replies {
			replies[i].Err = err
		}
		return replies
	}
	if len(batch) == 0 {
		return replies
	}
	r := renewal{session: s, batch: batch, start: watchdog.Now(), states: make([]renewing, len(batch))}
	for k := range batch {
		r.states[k].claim = s.find(batch[k].Owner)
	}
	parts, n := r.send()
	if err := r.await(ctx, parts, n); err != nil {
		for i := range replies {
			replies[i].Err = err
		}
		return replies
	}
	for k := range batch {
		replies[k] = r.reply(ctx, k)
	}
	return replies
}

// A renewal is one call of Renew.
type renewal struct {
	*session

	batch  []store.RenewRequest
	start  watchdog.Instant
	states []renewing
}

// renewing is how far one request has come.
type renewing struct {
	claim   *claim // nil: unknown
	asked   int    // how many nodes
	renewed int
	refused int
	door    bool // has answered
	stolen  bool
	waiters int
	err     error
}

// A renewedPart is the answer of one node to some requests.
type renewedPart struct {
	node    int
	indexes []int
	replies []store.RenewReply
}

// send asks each node for the votes that live there. It returns where the answers come, and how many.
func (r *renewal) send() (chan renewedPart, int) {
	parts, n := make(chan renewedPart, len(r.nodes)*len(r.batch)), 0
	for i := range r.nodes {
		lanes := make(map[int][]int) // of the node
		for k := range r.batch {
			if c := r.states[k].claim; c != nil && c.live(i, r.start) {
				lane := r.nodes[i].Lane(r.batch[k].Key)
				lanes[lane] = append(lanes[lane], k)
				r.states[k].asked++
			}
		}
		for _, indexes := range lanes {
			requests, claims := make([]store.RenewRequest, len(indexes)), make([]*claim, len(indexes))
			for n, k := range indexes {
				requests[n], claims[n] = r.batch[k], r.states[k].claim
			}
			if r.run(func() { parts <- renewedPart{i, indexes, r.renewOn(i, requests, claims)} }) {
				n++
			}
		}
	}
	return parts, n
}

// live reports whether the claim has a vote on the node.
func (c *claim) live(i int, now watchdog.Instant) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.votes[i] != nil && c.votes[i].live(now)
}

// renewOn renews votes of one lane of a node, and notes what the answers mean for them.
func (s *session) renewOn(i int, batch []store.RenewRequest, claims []*claim) []store.RenewReply {
	votes := make([]*vote, len(batch))
	replies := make([]store.RenewReply, len(batch))
	var requests []store.RenewRequest
	var limit time.Duration
	for k, c := range claims {
		c.mu.Lock()
		now := watchdog.Refresh()
		if v := c.votes[i]; v != nil && v.live(now) && c.releases == nil { // Q2
			votes[k] = v
			v.sent(now)
			q := &batch[k]
			q.Owner, q.Description = v.id, s.store.describe(c.owner, q.Description)
			q.Token = max(q.Token, c.token)
			requests = append(requests, *q)
			limit = max(limit, q.TTL)
		}
		c.mu.Unlock()
	}
	if len(requests) == 0 {
		return replies
	}
	ctx, cancel := context.WithTimeout(context.Background(), max(limit/5, patience(limit)))
	defer cancel()
	sent := watchdog.Now()
	got := s.nodes[i].Renew(ctx, requests)
	s.judge(i, got[0].Err, 0)
	for k, v := range votes {
		if v == nil {
			replies[k].Err = store.ErrExpired
			continue
		}
		replies[k] = got[0]
		v.renewed(&batch[k], &got[0], sent)
		got = got[1:]
	}
	return replies
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
		c.trusted(now)
		c.endLocked(v)
	case reply.Err == nil:
		v.extend(sent, q.TTL, reply.TTL)
		v.token = max(v.token, q.Token)
	}
}

// await waits until each request is decided.
func (r *renewal) await(ctx context.Context, parts chan renewedPart, n int) error {
	m := startMoment()
	defer m.end()
	for ; n > 0; n-- {
		select {
		case p := <-parts:
			r.note(&p)
		case <-m.over:
			return nil
		case <-r.stop:
			return store.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
		if majority, doors := r.decided(); majority {
			m.begin(doors)
		}
	}
	return nil
}

func (r *renewal) note(p *renewedPart) {
	for n, k := range p.indexes {
		st, reply := &r.states[k], &p.replies[n]
		st.door = st.door || p.node == st.claim.order[0]
		switch {
		case reply.Err == nil:
			st.renewed++
			st.waiters = max(st.waiters, reply.Waiters)
		case errors.Is(reply.Err, store.ErrLost):
			st.refused++
			st.stolen = st.stolen || errors.Is(reply.Err, store.ErrStolen)
		default:
			st.err = reply.Err
		}
	}
}

// decided reports whether each request is decided by a majority, and whether the doors have answered, too.
func (r *renewal) decided() (majority, doors bool) {
	majority, doors = true, true
	for k := range r.states {
		st := &r.states[k]
		need := min(r.store.majority(), st.asked)
		majority = majority && (st.renewed >= need || st.refused >= need)
		doors = doors && (st.door || st.claim == nil || !st.claim.live(st.claim.order[0], r.start))
	}
	return majority, doors
}

// reply answers one request, and asks anew for votes that are lost.
func (r *renewal) reply(ctx context.Context, k int) store.RenewReply {
	st, q := &r.states[k], &r.batch[k]
	c := st.claim
	if c == nil {
		cause, err := r.lost(ctx, q.Key)
		if err == nil {
			err = cause
		}
		return store.RenewReply{Err: err}
	}
	c.mu.Lock()
	now := watchdog.Refresh()
	trusted := c.trusted(now)
	ttl := c.lasts(now).Sub(r.start)
	var missing []int
	for i, v := range c.votes {
		if trusted && (v == nil || v.dead(now)) && !r.nodes[i].absent() {
			missing = append(missing, i)
		}
	}
	c.touched, c.request.TTL = now, q.TTL
	c.mu.Unlock()
	for _, i := range missing {
		r.run(func() { r.retake(c, i) })
	}
	reply := store.RenewReply{Waiters: st.waiters}
	switch {
	case !trusted && st.stolen:
		reply.Err = store.ErrStolen
	case !trusted:
		reply.Err = store.ErrExpired
		if cause, err := r.lost(ctx, q.Key); err == nil {
			reply.Err = cause
		}
	case st.renewed < r.store.majority():
		reply.Err = unreachable(st.err)
	case ttl < q.TTL:
		reply.TTL = ttl
	}
	return reply
}
