// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"log/slog"
	"time"

	"github.com/asynclock/asynclock-go/watchdog"
)

// A Step is one step of a key's machine: when it is made, and its effects. These are what the shell has to do after
// it, before the next step of the same key. It lives on the stack of the caller.
type Step struct {
	Now     watchdog.Instant
	Keys    int  // how many the client uses
	Closing bool // the client is being closed

	Dropped bool // nobody uses the key any more

	TripSent watchdog.Instant // when a request was sent whose answer has just come; 0: none
	TripTTL  time.Duration    // the TTL that its round trip has to fit
	Blocker  int64            // the token of who kept the decided waiters from the key; 0: unknown
	Left     float32          // how much of the trust was left in a lease when it was renewed, or was not; the least

	Renewed, NotRenewed int // how many renewals were answered so

	Notes []Note // for the log

	acquires list[Acquire, *Acquire]
	renewals list[Renewal, *Renewal]
	releases list[Release, *Release]
	unlocks  *stake   // its lease was unlocked
	release  *Release // that the caller of Unlock sends
	given    *Release // the withdrawal of an attempt that was given up, until it is decided what it brings
	trouble  *trouble // and its failures, which the next attempt goes on counting
	decided  list[Waiter, *Waiter]
	ended    list[Lease, *Lease]
}

// A Note is a line for the log.
type Note struct {
	Level slog.Level
	Text  string
	Attrs []slog.Attr
}

// NextAcquire returns the next request to be sent in the background, or nil.
func (st *Step) NextAcquire() *Acquire { return st.acquires.pop() }

// NextRenewal returns the next renewal to be sent in the background, or nil.
func (st *Step) NextRenewal() *Renewal { return st.renewals.pop() }

// NextRelease returns the next release to be sent in the background, or nil.
func (st *Step) NextRelease() *Release { return st.releases.pop() }

// NextDecided returns the next waiter that has a result, or nil.
func (st *Step) NextDecided() *Waiter {
	w := st.decided.pop()
	if w != nil {
		w.decided = false
	}
	return w
}

// NextEnded returns the next lease that has ended, or nil.
func (st *Step) NextEnded() *Lease { return st.ended.pop() }

func (st *Step) note(level slog.Level, text string, attrs ...slog.Attr) {
	st.Notes = append(st.Notes, Note{level, text, attrs})
}

// measured notes a round trip that has ended.
func (st *Step) measured(sent watchdog.Instant, ttl time.Duration) {
	st.TripSent, st.TripTTL = sent, ttl
}

// decide notes that w has a result.
func (st *Step) decide(w *Waiter) {
	if !w.decided {
		w.decided = true
		st.decided.push(w)
	}
}

// fail ends the waiter with err. It is in no queue any more, and its result was taken back.
func (st *Step) fail(w *Waiter, err error) {
	w.Stage, w.Err, w.Lease = Ended, err, nil
	st.decide(w)
}

// A linked is an element of a list. It is in one list at a time.
type linked[T any] interface {
	*T
	link() **T // to the next element
}

// A list is a queue without memory of its own.
type list[T any, P linked[T]] struct{ first, last *T }

func (l *list[T, P]) push(x *T) {
	if l.first == nil {
		l.first = x
	} else {
		*P(l.last).link() = x
	}
	l.last = x
}

func (l *list[T, P]) pop() *T {
	x := l.first
	if x != nil {
		next := P(x).link()
		l.first, *next = *next, nil
	}
	return x
}
