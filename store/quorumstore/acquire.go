// SPDX-License-Identifier: Apache-2.0

package quorumstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/internal/backoff"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

const (
	// stallLimit is about how long a claim with the door keeps other votes without a majority.
	stallLimit = 100 * time.Millisecond
	// recheck is about how soon a claim with the door and without a majority asks again.
	recheck = 30 * time.Millisecond
	// tries is how often a claim that may not wait, and has the door, asks the others. A claim without the door gives them
	// back at once.
	tries = 4
	// tryPause is the time between two of these tries.
	tryPause = 3 * time.Millisecond
)

// Acquire serves each request by itself.
func (s *session) Acquire(ctx context.Context, batch []store.AcquireRequest) []store.AcquireReply {
	return each(ctx, s, batch, s.acquire, func(err error) store.AcquireReply { return store.AcquireReply{Err: err} })
}

// each answers all requests of a batch at the same time.
func each[Q, R any](ctx context.Context, s *session, batch []Q, one func(context.Context, *Q) R, failed func(error) R) []R {
	replies := make([]R, len(batch))
	if err := s.usable(ctx); err != nil {
		for i := range replies {
			replies[i] = failed(err)
		}
		return replies
	}
	var rest sync.WaitGroup
	for i := 1; i < len(batch); i++ {
		rest.Go(func() { replies[i] = one(ctx, &batch[i]) })
	}
	if len(batch) > 0 {
		replies[0] = one(ctx, &batch[0])
	}
	rest.Wait()
	return replies
}

// An acquisition is one request to acquire, while it is served.
type acquisition struct {
	*session
	*claim

	request *store.AcquireRequest
	start   watchdog.Instant
	asked   []bool                      // by node
	queued  []bool                      // the node may have given a place in its queue
	seen    map[int]*store.AcquireReply // of the nodes that have answered
	pressed bool                        // who has the door has asked the others
}

func (s *session) acquire(ctx context.Context, q *store.AcquireRequest) store.AcquireReply {
	r := *q // a late answer may need it
	if err := s.store.Features().Check(r.Share, r.Extra); err != nil {
		return store.AcquireReply{Err: err}
	}
	c, err := s.enter(ctx, &r)
	if err != nil {
		return store.AcquireReply{Err: err}
	}
	if c == nil {
		return store.AcquireReply{Status: store.Withdrawn}
	}
	defer c.leave()
	a := acquisition{
		session: s, claim: c, request: &r, start: watchdog.Now(), seen: make(map[int]*store.AcquireReply),
		asked: make([]bool, len(s.nodes)), queued: make([]bool, len(s.nodes)),
	}
	reply := a.run(ctx)
	if reply.Err == nil && reply.Status == store.Held {
		s.tellHolder(ctx, r.Key, &reply)
	}
	if reply.Err != nil && ctx.Err() == nil || reply.Err == nil && reply.Status != store.Granted && reply.Status != store.Waiting {
		c.giveBack(nowhere)
		s.forget(c)
	}
	return reply
}

// run asks nodes until the request can be answered. A key that nobody else wants is asked of all nodes at once, and so is
// one of which the claim has a vote. Another key is asked of its door, and then of the others.
func (a *acquisition) run(ctx context.Context) store.AcquireReply {
	err := a.ask(ctx, a.first(), false)
	for err == nil {
		door := a.doorThatAnswered()
		switch {
		case door < 0:
			next := a.unasked()
			if len(next) == 0 {
				return a.nobody(ctx)
			}
			err = a.ask(ctx, next[:1], false)
		case a.granted() >= a.store.majority() && (a.seen[door].Status == store.Granted || a.isTrusted()):
			return a.finish(ctx, door)
		case a.seen[door].Status == store.Held && a.request.Wait && !a.queued[door]:
			err = a.ask(ctx, []int{door}, false) // those before it do not answer
		case a.seen[door].Status != store.Granted:
			a.wanted(a.request.Key)
			a.giveBackNow(ctx, door)
			return a.waiting(door)
		case !a.pressed:
			a.pressed = true
			err = a.press(ctx, door)
		default:
			return a.minority(ctx, door)
		}
	}
	return store.AcquireReply{Err: err}
}

// waiting is the answer to a claim that does not have the door.
func (a *acquisition) waiting(door int) store.AcquireReply {
	if r := a.seen[door]; r.Status == store.Waiting {
		a.watch()
		if r.Rank == 0 {
			a.watchDoor(door)
		}
	}
	return *a.seen[door]
}

// first returns the nodes to ask first.
func (a *acquisition) first() []int {
	present := a.present(a.doors())
	if !a.isWanted(a.request.Key) || a.has() {
		return present
	}
	return present[:1]
}

// unasked returns the nodes that were not asked yet.
func (a *acquisition) unasked() (nodes []int) {
	for _, i := range a.present(a.doors()) {
		if !a.asked[i] {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// doorThatAnswered returns the first node that says something about the key, or -1.
func (a *acquisition) doorThatAnswered() int {
	for _, i := range a.doors() {
		if r := a.seen[i]; r != nil && r.Err == nil && r.Grace == 0 {
			return i
		}
	}
	return -1
}

// ask asks nodes at once, beginning with the door. The others get no place in their queues, unless that is said. The error
// is that of ctx, or one that is final.
func (a *acquisition) ask(ctx context.Context, nodes []int, queue bool) (final error) {
	for n, i := range nodes {
		a.asked[i], a.queued[i] = true, a.queued[i] || queue || n == 0
	}
	holds := a.isTrusted()
	call := func(i int) store.AcquireReply {
		return a.session.ask(a.claim, i, a.request.Wait && (queue || i == nodes[0]) && !holds)
	}
	err := gather(ctx, a.session, nodes, call, func(i int, reply store.AcquireReply) progress {
		if errors.As(reply.Err, new(*SetError)) {
			final = reply.Err
			return settled
		}
		a.seen[i] = &reply
		return a.store.progress(a.granted(), queue || a.seen[nodes[0]] != nil)
	})
	return cmp.Or(err, final)
}

// press asks the other nodes, after the door. A claim that waits queues there, so that they are handed to it directly.
func (a *acquisition) press(ctx context.Context, door int) error {
	for try := range tries {
		var others []int
		for _, i := range a.present(a.doors()) {
			if r := a.seen[i]; i != door && (r == nil || r.Err != nil || r.Status != store.Granted) {
				others = append(others, i)
			}
		}
		if try > 0 && !backoff.Sleep(ctx, tryPause+rand.N(tryPause)) {
			return ctx.Err()
		}
		if err := a.ask(ctx, others, true); err != nil || a.request.Wait || a.granted() >= a.store.majority() {
			return err
		}
	}
	return nil
}

// finish hands the lease out.
func (a *acquisition) finish(ctx context.Context, door int) store.AcquireReply {
	switch numbered, err := a.number(ctx, a.claim); {
	case err != nil:
		return store.AcquireReply{Err: err}
	case !numbered:
		return a.minority(ctx, door)
	}
	reply := a.lease(a.start)
	if reply.Status != store.Granted {
		return a.minority(ctx, door)
	}
	seen := a.seen[door]
	reply.Waiters, reply.WillNotify = seen.Waiters, seen.WillNotify
	if reply.Waiters > 0 {
		a.wanted(a.request.Key)
	}
	return reply
}

// lease returns the answer to a claim that has a lease. It counts from start.
func (c *claim) lease(start watchdog.Instant) (reply store.AcquireReply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := watchdog.Refresh()
	if !c.trusted(now) {
		return reply
	}
	c.stalled = 0
	reply.Status = store.Granted
	reply.Grant = store.Grant{Token: c.token, TokensFollowClock: c.clocked}
	if ttl := c.lasts(now).Sub(start); ttl < c.request.TTL {
		reply.TTL = ttl
	}
	return reply
}

// minority answers a claim that has the door, and no majority.
func (a *acquisition) minority(ctx context.Context, door int) store.AcquireReply {
	present, worst := 0, store.AcquireReply{}
	for _, r := range a.seen {
		if r.Err != nil || r.Grace > 0 {
			continue
		}
		present++
		if r.Status != store.Granted {
			worst = *r
		}
	}
	switch {
	case present < a.store.majority():
		return a.nobody(ctx)
	case !a.request.Wait:
		a.giveBackNow(ctx, nowhere)
		worst.Status, worst.HolderNotified = store.Held, false
		return worst
	}
	if i := a.behindLease(); i >= 0 {
		a.giveBack(i)
		return a.waiting(i)
	}
	if a.hasStalled() {
		a.giveBack(door)
	}
	return store.AcquireReply{
		Status: store.Waiting, Holder: worst.Holder, Remaining: worst.Remaining,
		WillNotify: worst.WillNotify, Recheck: backoff.Jitter(recheck, 0.5),
	}
}

// behindLease returns the first node where the claim waits behind a lease, or -1. That has a majority without the door,
// which did not answer when it began, and needs the door in case that another node fails.
func (a *acquisition) behindLease() int {
	a.claim.mu.Lock()
	defer a.claim.mu.Unlock()
	first, has := make(map[string]int), make(map[string]int)
	for _, i := range a.order {
		v := a.claim.votes[i]
		if v == nil || v.until != 0 || v.behind == "" || a.seen[i] == nil || a.seen[i].Status != store.Waiting {
			continue
		}
		if has[v.behind]++; has[v.behind] == 1 {
			first[v.behind] = i
		}
		if has[v.behind] >= a.store.majority() {
			return first[v.behind]
		}
	}
	return -1
}

// hasStalled reports whether the claim has had the door for too long. Another one, with another door, may have the rest.
func (a *acquisition) hasStalled() bool {
	a.claim.mu.Lock()
	defer a.claim.mu.Unlock()
	now := watchdog.Now()
	stalled := a.stalled != 0 && now.Sub(a.stalled) > stallLimit+rand.N(stallLimit)
	if a.stalled == 0 || stalled {
		a.stalled = now
	}
	return stalled
}

// giveBackNow gives back all votes except that of the door, and waits for those that were granted. Others may want them.
func (a *acquisition) giveBackNow(ctx context.Context, door int) {
	if granted := a.giveBack(door); len(granted) > 0 {
		_ = a.await(ctx, granted) // the rest follows in the background
	}
}

// nobody answers when no majority can be had: all votes are given back, for those who can have one. In a grace, waiters
// learn of its end.
func (a *acquisition) nobody(ctx context.Context) store.AcquireReply {
	a.giveBackNow(ctx, nowhere)
	var grace time.Duration // the shortest: then there may be a majority
	var silent error
	for _, r := range a.seen {
		g := r.Grace
		if graced := (*store.GraceError)(nil); errors.As(r.Err, &graced) {
			g = graced.Remaining
		} else if r.Err != nil && (silent == nil || abstains(silent)) {
			silent = r.Err
		}
		if g > 0 && (grace == 0 || g < grace) {
			grace = g
		}
	}
	switch {
	case grace > 0 && a.request.Wait:
		return store.AcquireReply{Status: store.Waiting, Grace: grace, Remaining: grace, Recheck: min(grace, 250*time.Millisecond)}
	case grace > 0:
		return store.AcquireReply{Err: &store.GraceError{Remaining: grace}}
	}
	if silent != nil && !abstains(silent) {
		return store.AcquireReply{Err: silent}
	}
	return store.AcquireReply{Err: unreachable(silent)}
}

// unreachable is the error if no majority answers. It is no [store.ErrOutcomeUnknown], whatever those that are silent may
// have done: that is being given back.
func unreachable(err error) error {
	why := "too late"
	if err != nil {
		why = err.Error()
	}
	return fmt.Errorf("%w: quorumstore: no majority of nodes answers: %s", store.ErrUnreachable, why)
}
