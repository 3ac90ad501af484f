// SPDX-License-Identifier: Apache-2.0

package machine

// A queue holds waiters of one key in this client.
type queue struct {
	first, last *Waiter
	next        *Waiter // is looked at next; nil: the first
	n           int32
	calls       int32    // of them no futures
	tries       int32    // of them never wait
	patient     int32    // of them neither futures nor tries
	callers     *callers // of the futures of its key
}

// look returns one waiter after the other.
func (q *queue) look() *Waiter {
	w := q.next
	if w == nil {
		w = q.first
	}
	if w != nil {
		q.next = w.behind
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
		q.callers.count(w.Caller.Bound(), n)
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
	if q.next == w {
		q.next = w.behind
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
