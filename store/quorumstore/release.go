// SPDX-License-Identifier: Apache-2.0

package quorumstore

import (
	"context"
	"errors"
	"time"

	"github.com/asynclock/asynclock-go/internal/backoff"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

const (
	// releaseLimit is how long a node may take for one release.
	releaseLimit = time.Second
	// firstPause and longestPause are between the tries of a release.
	firstPause   = 20 * time.Millisecond
	longestPause = 500 * time.Millisecond
)

// A release is the end of one vote.
type release struct {
	vote *vote
	live bool // the vote was trusted
	// The claim's mutex guards these.
	tried    bool                  // at least once
	awaited  []chan<- answer[bool] // by whom
	answered bool
	reply    store.ReleaseReply
	err      error
}

// end begins to release a vote for good, as r says. It returns at once. The claim's mutex is held.
func (v *vote) end(r *store.ReleaseRequest) {
	if v.release != nil {
		return
	}
	s, now := v.claim.session, watchdog.Refresh()
	v.release = &release{vote: v, live: v.live(now)}
	request := *r
	request.Owner, request.Requeue = v.id, nil
	request.Clean = r.Clean && v.release.live
	// Nothing of the vote can be left when two minutes and its TTL are over.
	last := now.Add(2 * time.Minute)
	if v.until > now {
		last = last.Add(v.until.Sub(now))
	}
	landed := v.landing()
	if !s.release(func(tried func()) { s.release1(v, request, landed, last, tried) }) {
		v.release.err, v.release.tried = store.ErrClosed, true
	}
}

// release1 releases a vote, again and again until the node answers.
func (s *session) release1(v *vote, r store.ReleaseRequest, landed chan struct{}, last watchdog.Instant, tried func()) {
	defer s.forgetVote(v)
	if landed != nil {
		<-landed // or the release would overtake a request (Q5)
	}
	v.claim.mu.Lock()
	r.Uncertain = r.Uncertain || v.doubt
	r.Clean = r.Clean && !v.doubt && landed == nil
	v.claim.mu.Unlock()
	for failures := 0; ; failures++ {
		ctx, cancel := s.limit(releaseLimit + s.store.slack)
		sent := watchdog.Now()
		reply := s.nodes[v.node].Release(ctx, []store.ReleaseRequest{r})[0]
		cancel()
		s.judge(v.node, sent, reply.Err, 0)
		v.release.note(reply)
		tried()
		if reply.Err == nil || !abstains(reply.Err) || watchdog.Refresh() > last {
			return
		}
		r.Uncertain, r.Clean = true, false
		if !sleepUntil(s.stop, backoff.Jitter(backoff.Doubled(firstPause, failures, longestPause), 0.3)) {
			return
		}
	}
}

// note notes the answer to a try.
func (e *release) note(reply store.ReleaseReply) {
	e.vote.claim.mu.Lock()
	defer e.vote.claim.mu.Unlock()
	e.answered, e.reply, e.err = reply.Err == nil, reply, reply.Err
	e.tried = true
	for _, answers := range e.awaited {
		answers <- answer[bool]{e.vote.node, e.answered}
	}
	e.awaited = nil
}

// Release ends all votes of each claim at once. It answers at the pace of a majority, and of the door if that is not
// much slower. The rest follows in the background.
func (s *session) Release(ctx context.Context, batch []store.ReleaseRequest) []store.ReleaseReply {
	return each(ctx, s, batch, s.releaseAll, func(err error) store.ReleaseReply { return store.ReleaseReply{Err: err} })
}

func (s *session) releaseAll(ctx context.Context, r *store.ReleaseRequest) store.ReleaseReply {
	if err := s.store.Features().CheckRest(r); err != nil {
		return store.ReleaseReply{Err: err}
	}
	if r.Rest != nil {
		return store.ReleaseReply{Err: store.ErrUnsupported}
	}
	if r.Uncertain {
		s.mu.Lock()
		s.gone.Add(r.Owner)
		s.mu.Unlock()
	}
	reply := s.endClaim(ctx, r)
	if r.Requeue != nil && reply.Err == nil {
		if r.Requeue.Wait {
			s.wanted(r.Key) // its queue comes first
		}
		again := s.acquire(ctx, r.Requeue)
		reply.Requeue = &again
	}
	return reply
}

// endClaim releases all votes of a claim, and says what they were.
func (s *session) endClaim(ctx context.Context, r *store.ReleaseRequest) store.ReleaseReply {
	c := s.find(r.Owner)
	if c == nil {
		return s.nothingHeld(ctx, r.Key, nil)
	}
	releases, held := c.releaseVotes(r)
	if err := c.await(ctx, releases); err != nil {
		return store.ReleaseReply{Err: err}
	}
	reply := c.sumUp(releases, held)
	if reply.Err == nil {
		s.forget(c)
	}
	if errors.Is(reply.Cause, store.ErrExpired) {
		return s.nothingHeld(ctx, r.Key, c)
	}
	return reply
}

// nothingHeld is the answer to who releases a key that it does not have.
func (s *session) nothingHeld(ctx context.Context, key string, c *claim) store.ReleaseReply {
	err := s.lost(ctx, key, c)
	if errors.Is(err, store.ErrLost) {
		return store.ReleaseReply{Cause: err}
	}
	return store.ReleaseReply{Err: err}
}

// releaseVotes begins to release all votes of a claim, if that has not begun. It reports whether there was a lease.
func (c *claim) releaseVotes(r *store.ReleaseRequest) ([]*release, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.releases == nil {
		c.trusted(watchdog.Refresh())
		c.releases = []*release{}
		q := *r
		q.Token = max(q.Token, c.token)
		if c.token == 0 {
			q.HoldBack = 0
		}
		for _, v := range c.votes {
			if v != nil {
				v.end(&q)
				c.releases = append(c.releases, v.release)
			}
		}
	}
	return c.releases, c.leased
}

// await waits for the first tries of releases.
func (c *claim) await(ctx context.Context, releases []*release) error {
	tries, nodes := make(chan answer[bool], len(releases)), make([]int, 0, len(releases))
	c.mu.Lock()
	for _, e := range releases {
		nodes = append(nodes, e.vote.node)
		if e.tried {
			tries <- answer[bool]{e.vote.node, e.answered}
		} else {
			e.awaited = append(e.awaited, tries)
		}
	}
	c.mu.Unlock()
	s, answers := c.session, len(c.votes)-len(releases) // nodes without a vote have nothing to say
	door := s.nodes[c.order[0]].absent()
	return collect(ctx, s, nodes, tries, func(i int, answered bool) progress {
		if answered {
			answers++
		}
		door = door || i == c.order[0]
		return s.store.progress(answers, door)
	})
}

// sumUp says what the nodes have answered.
func (c *claim) sumUp(releases []*release, held bool) store.ReleaseReply {
	c.mu.Lock()
	defer c.mu.Unlock()
	had, silent, stolen, atDoor := 0, 0, false, false
	var err error
	for _, e := range releases {
		switch {
		case e.answered && e.reply.WasHeld:
			had++
			atDoor = atDoor || e.vote.node == c.order[0] // the next one was to ask the others
		case e.answered:
			stolen = stolen || errors.Is(e.reply.Cause, store.ErrStolen)
		default:
			silent++
			err = e.err
			if e.live {
				had++ // it was trusted, and nothing says otherwise
			}
		}
	}
	switch {
	case len(c.votes)-silent < c.session.store.majority():
		if err == nil || abstains(err) {
			err = store.ErrOutcomeUnknown
		}
		return store.ReleaseReply{Err: err}
	case held && had >= c.session.store.majority(), c.token == 0 && atDoor:
		return store.ReleaseReply{WasHeld: true}
	case stolen:
		return store.ReleaseReply{Cause: store.ErrStolen}
	}
	return store.ReleaseReply{Cause: store.ErrExpired}
}
