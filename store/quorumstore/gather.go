// SPDX-License-Identifier: Apache-2.0

package quorumstore

import (
	"context"
	"slices"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

const (
	// doorsMoment is how much longer than a majority the door of a key may take. It knows who waits.
	doorsMoment = 5 * time.Millisecond
	// allsMoment is how much longer all may take, where it matters what they say.
	allsMoment = 250 * time.Millisecond
	// leastMoment is how much longer other nodes may take, at least. Otherwise it is once more as long.
	leastMoment = 100 * time.Microsecond
)

// progress is how far the answers of some nodes go.
type progress int

const (
	undecided   progress = iota
	allWanted            // a majority is there, and all others matter
	doorMissing          // a majority is there, and the door is not
	decided              // both are there
	settled              // no other answer is needed
)

// gather makes a call to each node at once, and notes the answers one by one. It ends when all are there, or when the
// answers are settled. Beyond a majority it waits for a moment only, and not for nodes that usually take longer. So a node
// that is far or hangs delays nobody, and usually all others answer, and nothing is left under way. An answer that comes
// later is dropped: the call itself has to note what matters.
func gather[T any](ctx context.Context, s *session, nodes []int, call func(node int) T, note func(node int, answer T) progress) error {
	answers := make(chan answer[T], len(nodes))
	for _, i := range nodes {
		if !s.run(func() { answers <- answer[T]{i, call(i)} }) {
			return store.ErrClosed
		}
	}
	return collect(ctx, s, nodes, answers, note)
}

// An answer is that of one node.
type answer[T any] struct {
	node int
	T    T
}

// collect is the rest of gather.
func collect[T any](ctx context.Context, s *session, nodes []int, answers <-chan answer[T], note func(node int, answer T) progress) error {
	begun, left := time.Now(), slices.Clone(nodes)
	var moment *time.Timer
	var over <-chan time.Time
	for range nodes {
		select {
		case a := <-answers:
			left = slices.DeleteFunc(left, func(i int) bool { return i == a.node })
			taken, wait := time.Since(begun), doorsMoment
			switch note(a.node, a.T) {
			case undecided:
				continue
			case settled:
				return nil
			case allWanted:
				wait = allsMoment
			case decided:
				wait = min(max(taken, leastMoment), wait)
			}
			if !s.isExpected(left, taken+wait) {
				return nil
			}
			wait += s.store.slack
			if moment == nil {
				moment = time.NewTimer(wait)
				defer moment.Stop()
				over = moment.C
			}
			moment.Reset(wait)
		case <-over:
			return nil
		case <-s.stop:
			return store.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// isExpected reports whether one of these nodes usually answers within that time.
func (s *session) isExpected(nodes []int, within time.Duration) bool {
	return slices.ContainsFunc(nodes, func(i int) bool { return s.nodes[i].usuallyTakes() <= within+s.store.slack })
}
