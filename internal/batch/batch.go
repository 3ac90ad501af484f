// SPDX-License-Identifier: Apache-2.0

// Package batch gathers single requests into calls that carry many.
//
// Requests that are added while a call is under way go into the next call. Load therefore makes
// batches larger instead of calls more numerous. An idle queue has no goroutine.
package batch

import (
	"sync"
	"time"
)

// A Queue sends the added requests in batches, lane by lane.
type Queue[T any] struct {
	send    func(lane int, batch []T)
	largest int
	calls   int
	gather  time.Duration

	mu     sync.Mutex
	closed bool
	lanes  map[int]*lane[T]
	flying sync.WaitGroup
}

type lane[T any] struct {
	waiting []T
	calls   int
}

// New makes a queue that calls send from its own goroutines, with at most largest requests in a
// call. In each lane, at most calls of these calls run at once. A lane that hangs does not delay
// another lane. A call that is about to begin waits for the time gather, so that requests made one
// by one at the same time go together. Otherwise the first would go alone and the others after it.
func New[T any](largest, calls int, gather time.Duration, send func(lane int, batch []T)) *Queue[T] {
	return &Queue[T]{send: send, largest: largest, calls: calls, gather: gather, lanes: make(map[int]*lane[T])}
}

// Add queues one request and returns at once. After Close it does nothing and returns false.
func (q *Queue[T]) Add(number int, request T) bool { return q.AddAll(number, []T{request}) }

// AddAll is Add for several requests of one lane, which go in one call if they are not more than the
// largest batch. Added one by one, the first could go alone.
func (q *Queue[T]) AddAll(number int, requests []T) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	l := q.lanes[number]
	if l == nil {
		l = new(lane[T])
		q.lanes[number] = l
	}
	l.waiting = append(l.waiting, requests...)
	if l.calls < q.calls {
		l.calls++
		// The goroutine ends when the lane is empty; Close waits for it.
		q.flying.Go(func() { q.fly(number, l) })
	}
	return true
}

// fly sends batches until its lane is empty.
func (q *Queue[T]) fly(number int, l *lane[T]) {
	if q.gather > 0 {
		time.Sleep(q.gather)
	}
	for {
		batch := q.take(number, l)
		if batch == nil {
			return
		}
		q.send(number, batch)
	}
}

// take removes the next batch from the lane. If there is none, it deregisters the caller.
func (q *Queue[T]) take(number int, l *lane[T]) []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch n := len(l.waiting); {
	case n == 0:
		l.calls--
		if l.calls == 0 {
			delete(q.lanes, number)
		}
		return nil
	case n <= q.largest:
		batch := l.waiting
		l.waiting = nil
		return batch
	default:
		batch := l.waiting[:q.largest:q.largest]
		l.waiting = l.waiting[q.largest:]
		return batch
	}
}

// Close refuses further requests. It returns when all queued requests have been sent and no call is
// under way.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.flying.Wait()
}
