// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// Permits. A holding with the mode Permits is a tenure that is called a block. Its rules are numbered in
// docs/design.md, P1 to P10.

// A block is how many permits a holding has. Its root lease counts those that are in use.
type block struct {
	held  int32 // in the store, as far as the store has confirmed
	kept  int32 // that this client has not given up; never more than held
	limit int32 // in force, as the store last said; 0: it has not
	stale bool  // it was granted when there were more, and passes none on
	blind bool  // it was granted by a message, which does not say the limit, and no renewal has said it since
	over  bool  // the store was asked to end the holding
}

// mostExtra is how many more permits than the first waiter wants an attempt requests at most. That of a try asks once, for
// all of them.
const mostExtra = 1024

// extra returns how many permits the waiters directly behind the first could use at once: P2.
func (s *stake) extra() (sum int32) {
	first := s.key.waiters.first
	alone := !s.isJoinable() && (first.Future || !s.endTogether())
	if !s.isBlock() || alone {
		return 0
	}
	for w := first.behind; w != nil && *w.Terms == *s.terms && (s.isJoinable() || !w.Future); w = w.behind {
		if sum+w.Weight > mostExtra && !first.Try || sum+w.Weight > s.terms.Limit-first.Weight {
			break
		}
		sum += w.Weight
	}
	return sum
}

// kept returns how many permits this client has, and the limit in force as far as the store has said.
func (k *Key) kept() (kept, limit int32) {
	for s := &k.stakes; s != nil; s = s.next {
		if s.holding != nil && s.isBlock() {
			kept += s.holding.block.kept
			limit = max(limit, s.holding.block.limit)
		}
	}
	return kept, limit
}

// hasAll reports whether this client has all permits that w may share. Then w has nobody to ask: P9. It is
// so only as long as renewals say how many there are, and if they don't say that w wants too many.
func (k *Key) hasAll(w *Waiter) bool {
	if w.Terms.Mode != store.Permits {
		return false
	}
	kept, limit := k.kept()
	return kept >= max(limit, w.Terms.Limit) && (limit == 0 || w.Weight <= limit) && k.learnsLimit()
}

// learnsLimit reports whether every block is renewed.
func (k *Key) learnsLimit() bool {
	for s := &k.stakes; s != nil; s = s.next {
		if s.holding != nil && s.isBlock() && (!s.terms.Renew || s.terms.MaxHold > 0 || !s.holding.lease.isWanted()) {
			return false
		}
	}
	return true
}

// admitBlock serves the first waiters with what the grant has for them, and gives up what is left.
func (s *stake) admitBlock(st *Step) {
	s.fill(fewTries, false, st)
	s.holding.together = false
	s.holding.way = WayLocal
	s.key.refuseAsked(st)
	if r := s.giveUpFree(st); r != nil {
		st.releases.push(r)
	}
}

// fill gives what is free in the block to those who take it, in the order of the queue. Permits that lie make room
// for those behind. In the end what is left lies with idle futures: F6. Passing says that the bounds of what
// passes inside the client count. It reports whether somebody of the queue was served.
func (s *stake) fill(tries int32, passing bool, st *Step) (served bool) {
	k, root := s.key, s.holding.lease
	for n := min(k.futures.idle.n, tries); n > 0; n-- {
		w := k.futures.idle.pop()
		if s.mayTake(w, st.Now) && (!passing || s.mayPassOn(st.Now)) && (k.send(w, st) || !w.Caller.TakeBack()) {
			s.join(w, root)
			s.claim(w, st)
			continue
		}
		k.futures.idle.push(w)
	}
	for n := mostTries; n > 0; n-- {
		w := k.waiters.first
		if w == nil {
			break
		}
		if w.Weight > s.free() && s.hasRoomIn(w) {
			s.recall(st)
		}
		if !s.mayTake(w, st.Now) || passing && !s.mayPassOn(st.Now) {
			break
		}
		served = true
		k.waiters.pop()
		if s.admit(w, root, st); w.Stage != Lying { // thousands that nobody receives from are no handoffs
			s.holding.cohort.handoffs++
		}
	}
	for n := min(k.futures.idle.n, fewTries); n > 0 && k.waiters.first == nil && s.mayLie(st.Now); n-- {
		w := k.futures.idle.pop()
		if s.mayTake(w, st.Now) && !s.holding.block.stale && (!passing || s.mayPassOn(st.Now)) {
			s.admit(w, root, st)
		} else {
			k.futures.idle.push(w)
		}
	}
	return served
}

// hasRoomIn reports whether w could take its permits if nothing lay in the block.
func (s *stake) hasRoomIn(w *Waiter) bool {
	root := s.holding.lease
	if root.lies == 0 || *w.Terms != *s.terms || !s.isJoinable() && (root.joined > root.lies || root.claimed != 0) {
		return false
	}
	room := s.free()
	for j := root.joiner; j != nil; j = j.earlier {
		if j.lying != nil {
			room += j.Weight
		}
	}
	return w.Weight <= room
}

// mayPassOn reports whether permits may pass inside this client: P3.
func (s *stake) mayPassOn(now watchdog.Instant) bool {
	contender := s.key.contender()
	return !s.holding.block.stale && s.holding.cohort.mayPass(now) &&
		(contender == nil || !contender.attempt.try) // its caller has sent the request, and reads the answer
}

// mayTake reports whether the waiter w, which is the first, may take its permits from this block. P5: if
// they don't suffice for it, those behind it get none.
func (s *stake) mayTake(w *Waiter, now watchdog.Instant) bool {
	return *w.Terms == *s.terms && w.Weight <= s.free() && s.mayShare(w) && !s.holding.long && s.lastsLongEnough(now)
}

// passPermits gives what is free in the block to the first waiters, without the store: P3. It returns the
// release of what nobody gets, or nil: P4.
func (s *stake) passPermits(st *Step) *Release {
	if s.fill(fewTries, true, st) {
		s.key.adapt(st)
		s.askForOthers(st)
	}
	return s.giveUpFree(st)
}

// giveUpFree returns the release of the permits that nobody uses, or nil if all are in use. The last ones
// end the holding.
func (s *stake) giveUpFree(st *Step) *Release {
	h, root := s.holding, s.holding.lease
	switch free := s.free(); {
	case root.joiner == nil:
		h.block.over = true
		return s.giveBack(root.holdBack(st.Now), st)
	case free == 0, s.spare(st.Now) == 0:
		return nil
	default:
		h.block.kept -= free
	}
	r := s.releaseFree()
	if s.key.contender() == nil && !s.key.isHeldUp() {
		s.key.leaves(r) // a try asks once the store has them, and does not wait for those of later steps: T4
	}
	return r
}

// releaseFree returns the release of all but the permits that the block keeps. A block that is given up in parts
// has no minimum hold, so requests of this kind may overtake each other, and renewals too.
func (s *stake) releaseFree() *Release {
	h := s.holding
	r := s.key.host.NewRelease()
	r.Key = s.key
	r.Batch[0] = store.ReleaseRequest{
		Key: s.key.Name, Owner: s.owner, Token: h.last,
		Rest: &store.Share{Mode: store.Permits, Weight: h.block.kept, Limit: s.terms.Limit},
	}
	r.TTL, r.Trusted, r.forced = s.terms.TTL, h.deadline, h.forced != 0
	r.Until = h.deadline.Add(s.terms.TTL)
	r.ended = &h.block.over
	return r
}

// Rested handles the last answer to a release that keeps a part, and returns what its caller is told. If
// nothing was held, the block is lost. If no answer came, a renewal will tell.
func (k *Key) Rested(r *Release, reply *store.ReleaseReply, st *Step) error {
	defer k.reconcile(st)
	q := r.Request()
	s := k.stakeOf(q.Owner)
	switch lost := reply.Err == nil && !reply.WasHeld; {
	case *r.ended: // and this request came later, so it found nothing
	case lost && s != nil:
		err := r.Lost(reply.Cause)
		s.lose(err, st)
		return err
	case lost:
		return r.Lost(reply.Cause)
	case s != nil:
		s.holding.block.held = min(s.holding.block.held, q.Rest.Weight)
	}
	return reply.Err
}

// learnLimit notes the limit in force, as the answer to a renewal has it. A larger one may be of use to a
// waiter that had nobody to ask. If it is smaller, more permits may be out than there are, perhaps those of
// others. So each one that comes free is given back, and the store decides.
func (s *stake) learnLimit(limit int32) {
	if limit == 0 || !s.isBlock() {
		return
	}
	s.holding.block.blind = false
	for t := &s.key.stakes; t != nil; t = t.next {
		if t.holding != nil && t.isBlock() {
			b := &t.holding.block
			b.stale = b.stale || limit < b.limit
			b.limit = limit
		}
	}
}

// limitChanged handles that the limit was set. A block whose grant did not say the limit may have been granted
// under a larger one, and the answer to the renewal would not show that.
func (s *stake) limitChanged(st *Step) {
	b := &s.holding.block
	b.stale = b.stale || b.blind
	s.renewNow(st)
}

// others returns how many other clients wait, if the store says that n do. One of them may be this client.
func (s *stake) others(n int) int {
	if c := s.key.contender(); c != nil && c.attempt.mayBeThere() {
		n--
	}
	return max(n, 0)
}

// refuseTooMuch fails the first waiter, because it wants more permits than there are. If it wants fewer
// than the request did, it asks for those.
func (s *stake) refuseTooMuch(call *Acquire, limit int32, st *Step) {
	wanted := call.Request().Share.Weight
	err := fmt.Errorf("%w: %d are wanted of the %d that were set", ErrPermits, wanted, limit)
	if s.key.waiters.first.Weight < wanted {
		s.abandon(nil, st)
		return
	}
	s.refuseFirst(err, st)
}
