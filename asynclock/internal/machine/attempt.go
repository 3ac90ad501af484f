// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/asynclock/asynclock-go/internal/backoff"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// An Attempt is a client's one waiter for a key in the store. It stands for all local waiters.
//
// Its rules are numbered in docs/design.md, W1 to W10. They protect against a grant that is older
// than it looks. The store may have granted the key to this owner long before the client reads the
// message, and may have granted it to another owner since.
type Attempt struct {
	base   watchdog.Instant // known to precede any grant that is still unread
	mark   int64            // grants with a token up to this are older than base
	ticket int64            // our place in the store's queue
	grace  watchdog.Instant // until then the store grants nothing to anyone, and knows of no holder; 0: no grace

	due     watchdog.Instant // when the next request is due, or a waiter's patience ends
	trouble *trouble         // the failures up to now; nil: the last request was answered in time
	began   *Waiter          // the waiter that it was begun for, until the store has given a place
	unasked *Waiter          // the first waiter, if the request ended with its caller's context: whoever is next asks at once
	blocker *HeldError       // who had the key when the store last answered that we wait; nil: nobody, or no answer yet

	weight int32 // Permits: what the last request was for
	limit  int32 // Permits: the limit in force, as the store last said; 0: it has not

	again      bool  // repeat the request when the one under way is answered
	try        bool  // the attempt is that of who never waits, and nobody else may continue it
	watch      bool  // ask the store to notify us of waiters behind our holding; once set, always
	watched    bool  // the store has answered a request that asked for that
	contended  bool  // others may wait behind us already
	unnotified bool  // the notification of others who request the key may not come, or has come already
	held       bool  // the attempt led to a holding
	uncertain  bool  // a request was never answered and may still take effect
	known      bool  // the store has answered a request
	unlimited  bool  // the waiters were in the store's queue before, so its limit does not apply
	inFlight   int16 // requests without an answer yet
}

// An Acquire is one request of an attempt.
type Acquire struct {
	Key     *Key
	Batch   [1]store.AcquireRequest // the request; a store was given it, so it does not change any more
	Timeout time.Duration           // for the store
	Sent    watchdog.Instant        // set by who sends it, just before

	First bool // the first of the two requests that a TryLock may make
	Ended bool // there is no answer because the caller's context ended

	attempt *Attempt
	next    *Acquire
}

func (c *Acquire) link() **Acquire { return &c.next }

// Request returns the request.
func (c *Acquire) Request() *store.AcquireRequest { return &c.Batch[0] }

// An attemptAndAcquire is an attempt with its first request, in one allocation. A caller that waits on
// its own goroutine usually ends both at the same time. The attempt of a future may last long after
// its request, so it has none of this.
type attemptAndAcquire struct {
	attempt Attempt
	call    Acquire
}

// contend starts an attempt for the first waiter and returns its first request. That of a try is the first of two.
func (s *stake) contend(failures *trouble, now watchdog.Instant) *Acquire {
	if s.key.waiters.first.Future {
		s.begin(new(Attempt), failures, now)
		return s.firstRequest()
	}
	made := new(attemptAndAcquire)
	s.begin(&made.attempt, failures, now)
	s.requestAs(&made.call)
	made.call.First = made.attempt.try
	return &made.call
}

// begin makes a the attempt of the first waiter, after those failures of the one before. W1: the client registers the
// owner and takes base before it sends anything.
func (s *stake) begin(a *Attempt, failures *trouble, now watchdog.Instant) {
	w := s.key.waiters.first
	s.owner = s.key.host.NewOwner()
	s.terms = w.Terms
	*a = Attempt{base: now, due: never, trouble: failures, try: w.Try, began: w}
	s.attempt = a
}

// request returns the attempt's next request.
func (s *stake) request() *Acquire {
	call := new(Acquire)
	s.requestAs(call)
	return call
}

// placeOf returns the place to request for the first waiter. One that a waiter brings from another queue is its own.
func (a *Attempt) placeOf(first *Waiter) int64 {
	if a.ticket == 0 && first == a.began {
		return first.Ticket
	}
	return a.ticket
}

// requestAs makes call the attempt's next request.
func (s *stake) requestAs(call *Acquire) {
	a := s.attempt
	a.inFlight++
	a.unasked = nil
	s.key.requests++
	first := s.key.waiters.first
	mayLie := first.Future || first.Part || s.key.futures.idle.n > 0
	a.watch = a.watch || mayLie || s.key.waiters.n > 1 || s.isTenure() // S1, P6
	share := s.share()
	a.weight = share.Weight
	ttl, limit := s.terms.TTL, s.terms.QueueLimit
	if a.unlimited {
		limit = 0
	}
	*call = Acquire{
		Key:     s.key,
		attempt: a,
		Batch: [1]store.AcquireRequest{{
			Key:            s.key.Name,
			Owner:          s.owner,
			TTL:            s.ttl(),
			GrantTTL:       min(grantTTL(ttl), s.ttl()),
			WaiterTTL:      grantTTL(ttl),
			Wait:           !a.try,
			QueueLimit:     limit,
			Ticket:         a.placeOf(first),
			NotifyQueued:   a.watch,
			NotifyRequests: mayLie || s.terms.Retention > 0,
			Share:          share,
			Extra:          s.extra(),
			Description:    s.terms.Holder,
		}},
		Timeout: backoff.Doubled(CallTimeout(ttl), a.trouble.count(), Patience(ttl)),
	}
}

// firstRequest returns the next request, which no caller sends. That of a try is the first of two.
func (s *stake) firstRequest() *Acquire {
	call := s.request()
	call.First = s.attempt.try
	return call
}

// requestAgain sends the attempt's heartbeat, which also finds a grant whose message was lost. If a
// request is under way, the store may have decided its answer before the event that caused this call.
// Another request then follows it.
func (s *stake) requestAgain(st *Step) {
	if s.attempt.inFlight > 0 {
		s.attempt.again = true
		return
	}
	s.attempt.again = false
	st.acquires.push(s.request())
}

// mayBeThere reports whether the store may know of the owner.
func (a *Attempt) mayBeThere() bool { return a.known || a.uncertain || a.inFlight > 0 }

// serves reports whether the attempt may go on for w, the first waiter or nil. The answer to a try is for its weight.
func (s *stake) serves(w *Waiter) bool {
	return w != nil && *w.Terms == *s.terms && w.Try == s.attempt.try && (!w.Try || w.Weight == s.attempt.weight)
}
