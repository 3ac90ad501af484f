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
	// probePause is the time between two looks at a node that did not answer.
	probePause = 100 * time.Millisecond
	// probeLimit is how long such a look may take.
	probeLimit = time.Second
)

// A node is a client's connection to one of the stores, and what the client thinks of it.
type node struct {
	store.Session

	mu     sync.Mutex
	silent bool             // it did not answer lately, and is being probed
	grace  watchdog.Instant // it grants nothing until then
}

func (n *node) open(s store.Session) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.Session = s
}

func (n *node) close(ctx context.Context) error {
	if n.Session == nil { // Open has failed
		return nil
	}
	return n.Close(ctx)
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

// doubt does without a node until it answers a probe.
func (s *session) doubt(i int) {
	n := s.nodes[i]
	n.mu.Lock()
	was := n.silent || n.Session == nil
	n.silent = n.silent || n.Session != nil
	n.mu.Unlock()
	if !was {
		s.run(func() { s.probe(n) })
	}
}

// probe asks a silent node until it answers.
func (s *session) probe(n *node) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), probeLimit)
		_, err := n.Inspect(ctx, "quorumstore/probe")
		cancel()
		if err == nil || !abstains(err) {
			n.mu.Lock()
			n.silent = false
			n.mu.Unlock()
			return
		}
		timer := time.NewTimer(probePause)
		select {
		case <-timer.C:
		case <-s.stop:
			timer.Stop()
			return
		}
	}
}
