// SPDX-License-Identifier: Apache-2.0

package quorumstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/internal/backoff"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

const (
	// lookPause is the time between two looks at a node. It doubles for one that refuses requests, up to mostPause.
	lookPause = 200 * time.Millisecond
	mostPause = 5 * time.Second
	// lookLimit is how long a look may take, at least.
	lookLimit = 250 * time.Millisecond
	// mostPatience is the longest time for which a node may be silent before the others go on without it.
	mostPatience = 2 * time.Second
	// watchFor is how long nodes are looked at after a claim was told to wait: longer than the pause between its requests.
	watchFor = 5 * time.Second
)

// A node is a client's connection to one of the stores, and what the client thinks of it.
type node struct {
	store.Session

	looks chan struct{} // wakes who looks at it
	slack time.Duration // that of the store

	mu     sync.Mutex
	silent bool             // it did not answer lately
	fails  int              // how often it became silent since it has answered a request
	grace  watchdog.Instant // it grants nothing until then
	pace   time.Duration    // that of its slowest answer lately
}

// absent reports whether requests should do without the node.
func (n *node) absent() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.silent || n.grace != 0 && watchdog.Now() < n.grace
}

// present returns those of the nodes that are not absent, or all if these are no majority.
func (s *session) present(order []int) (present []int) {
	for _, i := range order {
		if !s.nodes[i].absent() {
			present = append(present, i)
		}
	}
	if len(present) < s.store.majority() {
		return order
	}
	return present
}

// abstains reports whether an error is about the node, and not about the request.
func abstains(err error) bool {
	return errors.Is(err, store.ErrUnreachable) || errors.Is(err, store.ErrOutcomeUnknown) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// judge notes what the answer to a request says about a node.
func (s *session) judge(i int, sent watchdog.Instant, err error, grace time.Duration) {
	n := s.nodes[i]
	var graced *store.GraceError
	if errors.As(err, &graced) {
		grace = graced.Remaining
	}
	if grace == 0 && err != nil && abstains(err) {
		s.doubt(i)
		return
	}
	n.answered(sent)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fails = 0
	if n.grace = 0; grace > 0 {
		n.grace = watchdog.Now().Add(grace)
	}
}

// doubt does without a node until it answers a look. Those that wait there are to ask elsewhere.
func (s *session) doubt(i int) {
	n := s.nodes[i]
	n.mu.Lock()
	was := n.silent
	n.silent = true
	if !was {
		n.fails++
	}
	n.mu.Unlock()
	if !was {
		n.wake()
		s.notify(store.Event{Kind: store.EventResync})
	}
}

// watch looks at all nodes while claims wait. That a node hangs, nobody tells.
func (s *session) watch() {
	s.mu.Lock()
	s.waited = watchdog.Now()
	s.mu.Unlock()
	for _, n := range s.nodes {
		n.wake()
	}
}

func (n *node) wake() {
	select {
	case n.looks <- struct{}{}:
	default: // it is awake
	}
}

// look asks a node for a sign of life: when it is woken, and then while it is silent or claims wait.
func (s *session) look(i int) {
	n := s.nodes[i]
	for {
		select {
		case <-n.looks:
		case <-s.stop:
			return
		}
		for again, first := true, true; again; again, first = s.needsLook(n), false {
			if pause := n.pause(first); pause > 0 && !sleepUntil(s.stop, pause) {
				return
			}
			ctx, cancel := s.limit(n.atLeast(lookLimit))
			sent := watchdog.Now()
			_, err := n.Inspect(ctx, "quorumstore/look")
			cancel()
			if err != nil && abstains(err) {
				s.doubt(i)
			} else {
				n.answered(sent)
			}
		}
	}
}

// pause is the time before the next look. A node that has answered looks, and then no request, may refuse to write: it has
// more and more time.
func (n *node) pause(first bool) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if first && n.fails < 2 {
		return 0
	}
	return backoff.Doubled(lookPause, n.fails-1, mostPause)
}

// sleepUntil waits for d. It reports false if stop was closed first.
func sleepUntil(stop <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-stop:
		return false
	}
}

// answered notes that a node has answered a request that was sent then.
func (n *node) answered(sent watchdog.Instant) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.silent = false
	n.pace = max(watchdog.Now().Sub(sent), n.pace*7/8)
}

// usuallyTakes is how long the node took for its slowest answer lately.
func (n *node) usuallyTakes() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pace
}

// patience is how long the node may take before the others go on without it: a twentieth of the TTL, at least 50 ms. A
// node that was slow lately has four times as long as it took, up to a quarter of the TTL.
func (n *node) patience(ttl time.Duration) time.Duration {
	least := max(ttl/20, 50*time.Millisecond)
	return min(n.atLeast(least), max(ttl/4, least)+n.slack)
}

// atLeast is how long a request may take, or longer if the node was slow.
func (n *node) atLeast(d time.Duration) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return min(max(4*n.pace, d), mostPatience) + n.slack
}

func (s *session) needsLook(n *node) bool {
	n.mu.Lock()
	silent := n.silent
	n.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return silent || s.waited != 0 && watchdog.Now().Sub(s.waited) < watchFor
}
