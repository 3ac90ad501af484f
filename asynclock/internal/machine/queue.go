// SPDX-License-Identifier: Apache-2.0

package machine

// A queue holds waiters of one key in this client.
type queue struct {
	first, last *Waiter
	futures     *futures // of the key; nil if it has seen none
	n           int32
	calls       int32 // of them no futures
	tries       int32 // of them never wait
	patient     int32 // of them neither futures nor tries
}

// cursor is the waiter that is looked at next; nil: the first.
func (q *queue) cursor() **Waiter {
	if q == &q.futures.idle {
		return &q.futures.nextIdle
	}
	return &q.futures.nextQueued
}

// look returns one waiter after the other, of a key that has seen a future.
func (q *queue) look() *Waiter {
	next := q.cursor()
	w := *next
	if w == nil {
		w = q.first
	}
	if w != nil {
		*next = w.behind
	}
	return w
}

func (q *queue) push(w *Waiter) {
	w.ahead = q.last
	if q.last == nil {
		q.first = w
	} else {
		q.last.behind = w
	}
	q.last = w
	q.count(w, 1)
}

func (q *queue) count(w *Waiter, n int32) {
	if q.n += n; !w.Future {
		q.calls += n
	}
	switch {
	case w.Try:
		q.tries += n
	case w.Future:
		q.futures.callers.count(w.Caller.Bound(), n)
	default:
		q.patient += n
	}
}

func (q *queue) pushFront(w *Waiter) {
	w.behind = q.first
	if q.first == nil {
		q.last = w
	} else {
		q.first.ahead = w
	}
	q.first = w
	q.count(w, 1)
}

func (q *queue) remove(w *Waiter) {
	if q.futures != nil && *q.cursor() == w {
		*q.cursor() = w.behind
	}
	if w.ahead == nil {
		q.first = w.behind
	} else {
		w.ahead.behind = w.behind
	}
	if w.behind == nil {
		q.last = w.ahead
	} else {
		w.behind.ahead = w.ahead
	}
	w.ahead, w.behind = nil, nil
	q.count(w, -1)
}

func (q *queue) pop() *Waiter {
	w := q.first
	if w != nil {
		q.remove(w)
	}
	return w
}
