// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/asynclock/asynclock-go/internal/failure"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A Release gives back a key, or a place in its queue.
type Release struct {
	Caller  any                     // the shell's; the machine does not look at it
	Key     *Key                    // of a Rest; otherwise nil
	Batch   [1]store.ReleaseRequest // the request; a store was given it, so it does not change any more
	Requeue *Acquire                // the attempt that the same request starts; nil if none

	TTL     time.Duration
	Until   watchdog.Instant // when to give up, because the TTL has ended by then
	Trusted watchdog.Instant // the trust deadline of the lease; the unlock was before it

	Withdrawal bool // no caller waits for it, and it matters only as long as the client has a session
	Leaves     bool // who never waits does not ask before the first answer: T4. Machines count these
	Unheld     bool // nobody has what is given back

	forced bool  // a message said that the key was taken, and the store has not denied it yet
	ended  *bool // of a Rest: the holding that it is about was released meanwhile
	next   *Release
}

func (r *Release) link() **Release { return &r.next }

// Request returns the request.
func (r *Release) Request() *store.ReleaseRequest { return &r.Batch[0] }

// Lost returns why the store had not kept the key until r. Cause is what the store says.
func (r *Release) Lost(cause error) error {
	if r.forced {
		return store.ErrForced
	}
	return failure.Lost(cause)
}

// retainOrGiveBack retains a key that nobody here is to have, if that is allowed. Otherwise it returns the release to
// send.
func (s *stake) retainOrGiveBack(st *Step) *Release {
	keep := s.holding.lease.holdBack(st.Now)
	if keep == 0 && s.key.waiters.first == nil && s.mayRetain(st) {
		s.retain(st.Now)
		return nil
	}
	return s.giveBack(keep, st)
}

// giveBack returns the release of a key whose lease has ended. Those who wait queued long ago, so
// the store's limit does not apply to them.
func (s *stake) giveBack(keep time.Duration, st *Step) *Release {
	r := s.release(keep, st)
	if r.Requeue != nil {
		r.Requeue.Request().QueueLimit = 0
	}
	return r
}

// release ends the holding and returns the release to send. The local waiters queue with the same
// request.
func (s *stake) release(keep time.Duration, st *Step) *Release {
	h := s.holding
	r := s.key.host.NewRelease()
	r.Batch[0] = store.ReleaseRequest{
		Key: s.key.Name, Owner: s.owner, Token: h.last, HoldBack: keep,
		Uncertain: h.isUncertain(),
		// A reader proves nothing about others: a server may know it and have forgotten another.
		Clean: h.unanswered == 0 && !h.isUncertain() && !s.isTenure(),
	}
	r.TTL, r.Trusted, r.forced, r.Unheld = s.terms.TTL, h.deadline, h.forced != 0, h.lease == nil
	r.Until = h.deadline.Add(s.terms.TTL)
	if s.key.futures.vain == 0 {
		s.key.requeueIdle()
	}
	s.forgetOwner()
	k := s.key
	first := k.waiters.first
	switch may := first != nil && k.mayContend(first); {
	case k.isHeldUp(), may && first.Try && (!k.TriesRequeue || k.free(first, st.Now) != nil): // T4
		k.leaves(r)
	case may:
		alone := k.hasNothing()
		r.Requeue = k.unused().contend(nil, st.Now)
		r.Requeue.First = r.Requeue.First && alone
		r.Batch[0].Requeue = r.Requeue.Request()
		r.Batch[0].Requeue.Ticket = 0 // at the tail, also if the waiter brings a place
	}
	return r
}
