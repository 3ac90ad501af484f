// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// withdraw ends, in the background, everything that an owner has in the store.
func (k *Key) withdraw(request store.ReleaseRequest, ttl time.Duration, st *Step) {
	k.leaves(k.withdrawal(request, ttl, st))
}

// withdrawal is withdraw for a release that may take the next request with it.
func (k *Key) withdrawal(request store.ReleaseRequest, ttl time.Duration, st *Step) *Release {
	r := k.host.NewRelease()
	r.Batch[0] = request
	r.TTL, r.Until = ttl, st.Now.Add(2*ttl)
	r.Withdrawal = true
	st.releases.push(r)
	return r
}

// abandon ends the attempt and leaves the store's queue, in the background. It also gives back a key
// that the store has granted.
func (s *stake) abandon(failures *trouble, st *Step) {
	s.key.leaves(st.given)
	st.given, st.trouble = nil, failures
	if s.attempt.mayBeThere() {
		st.given = s.key.withdrawal(store.ReleaseRequest{
			Key: s.key.Name, Owner: s.owner, Uncertain: s.attempt.uncertain || s.attempt.inFlight > 0,
		}, s.terms.TTL, st)
	}
	s.forgetOwner()
}

// isHeldUp reports whether the first waiter never waits, and does not ask before the store has answered what this client
// has given back: T4.
func (k *Key) isHeldUp() bool {
	first := k.waiters.first
	return first != nil && first.Try && k.leaving > 0
}

// leaves holds up who never waits until the first answer to r, which may be nil: T4.
func (k *Key) leaves(r *Release) {
	if r == nil {
		return
	}
	r.Leaves = true
	k.host.Leaves()
	k.leaving++
}

// leaveAll does so for what this client gives back by itself in this step. Parts of a block that goes on have been
// decided on.
func (k *Key) leaveAll(st *Step) {
	for r := st.releases.first; r != nil; r = r.next {
		if !r.Leaves && r.Requeue == nil && r.Batch[0].Rest == nil {
			k.leaves(r)
		}
	}
}
