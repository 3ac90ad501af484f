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
	patient time.Duration // 0: for ever

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

// Overlook makes a call that lasts for longer than patience count no more: another one may begin. So calls to
// a server that is far away are not too few, and a call that hangs does not hold up the others of its lane. It
// is called before the queue is used.
func (q *Queue[T]) Overlook(patience time.Duration) *Queue[T] {
	q.patient = patience
	return q
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
	q.begin(number, l)
	return true
}

// begin begins another call if one may. q.mu is held.
func (q *Queue[T]) begin(number int, l *lane[T]) {
	if l.calls < q.calls {
		l.calls++
		// The goroutine ends when the lane is empty; Close waits for it.
		q.flying.Go(func() { q.fly(number, l) })
	}
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
		if q.patient == 0 {
			q.send(number, batch)
		} else {
			q.sendPatiently(number, l, batch)
		}
	}
}

// sendPatiently sends a batch, and lets another call begin when this one lasts.
func (q *Queue[T]) sendPatiently(number int, l *lane[T], batch []T) {
	var overlooked, ended bool // q.mu is held where they are used
	lasts := time.AfterFunc(q.patient, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if ended {
			return
		}
		overlooked = true
		l.calls--
		if len(l.waiting) > 0 {
			q.begin(number, l)
		}
	})
	q.send(number, batch)
	lasts.Stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	ended = true
	if overlooked {
		l.calls++ // it counts again until it ends
	}
}

// take removes the next batch from the lane. If there is none, it deregisters the caller.
func (q *Queue[T]) take(number int, l *lane[T]) []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch n := len(l.waiting); {
	case n == 0, l.calls > q.calls: // then others go on
		l.calls--
		if n == 0 && l.calls == 0 && q.lanes[number] == l {
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
