// SPDX-License-Identifier: Apache-2.0

package quorumstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

const (
	// lookPause is the time between two looks at a node.
	lookPause = 200 * time.Millisecond
	// lookLimit is how long a look may take.
	lookLimit = 250 * time.Millisecond
	// watchFor is how long nodes are looked at after a claim was told to wait: longer than the pause between its requests.
	watchFor = 5 * time.Second
)

// A node is a client's connection to one of the stores, and what the client thinks of it.
type node struct {
	store.Session

	looks chan struct{} // wakes who looks at it

	mu     sync.Mutex
	silent bool             // it did not answer lately
	grace  watchdog.Instant // it grants nothing until then
}

// absent reports whether requests should do without the node.
func (n *node) absent() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.silent || n.grace != 0 && watchdog.Now() < n.grace
}

// abstains reports whether an error is about the node, and not about the request.
func abstains(err error) bool {
	return errors.Is(err, store.ErrUnreachable) || errors.Is(err, store.ErrOutcomeUnknown) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// judge notes what the answer of a node says about it.
func (s *session) judge(i int, err error, grace time.Duration) {
	n := s.nodes[i]
	var graced *store.GraceError
	if errors.As(err, &graced) {
		grace = graced.Remaining
	}
	if grace == 0 && err != nil && abstains(err) {
		s.doubt(i)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
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

// look asks a node for a sign of life, while it is silent or claims wait.
func (s *session) look(i int) {
	n := s.nodes[i]
	pause := time.NewTimer(lookPause)
	defer pause.Stop()
	for {
		select {
		case <-n.looks:
		case <-s.stop:
			return
		}
		for s.needsLook(n) {
			pause.Reset(lookPause)
			select {
			case <-pause.C:
			case <-s.stop:
				return
			}
			ctx, cancel := context.WithTimeout(context.Background(), lookLimit)
			_, err := n.Inspect(ctx, "quorumstore/look")
			cancel()
			if err != nil && abstains(err) {
				s.doubt(i)
				continue
			}
			n.mu.Lock()
			n.silent = false
			n.mu.Unlock()
		}
	}
}

func (s *session) needsLook(n *node) bool {
	n.mu.Lock()
	silent := n.silent
	n.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return silent || s.waited != 0 && watchdog.Now().Sub(s.waited) < watchFor
}
