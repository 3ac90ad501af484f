// SPDX-License-Identifier: Apache-2.0

// Package batch gathers single requests into calls that carry many.
//
// What is added while a call is under way goes into the next one, so load makes
// batches larger instead of calls more numerous, and an idle queue has no
// goroutine.
package batch

import (
	"sync"
	"time"
)

// A Queue sends what is added to it, in batches, lane by lane.
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

// New makes a queue that calls send from its own goroutines, with at most
// largest requests at a time and at most calls of them at once in each lane. A
// lane that hangs does not hold up another. For so long as gather says, a call that
// is not yet under way waits for company, so that requests that are made one by one
// at the same time do not go as one alone and then the others.
func New[T any](largest, calls int, gather time.Duration, send func(lane int, batch []T)) *Queue[T] {
	return &Queue[T]{send: send, largest: largest, calls: calls, gather: gather, lanes: make(map[int]*lane[T])}
}

// Add queues one request and returns at once. It reports false, and does
// nothing, after Close.
func (q *Queue[T]) Add(number int, request T) bool {
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
	l.waiting = append(l.waiting, request)
	if l.calls < q.calls {
		l.calls++
		// It ends when the lane is empty; Close waits for it.
		q.flying.Go(func() { q.fly(number, l) })
	}
	return true
}

// fly sends batches until its lane has no more.
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

// take removes the next batch from the lane, or signs the caller off.
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

// Close refuses further requests and returns when what was queued has been sent
// and no call is under way.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.flying.Wait()
}
