// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A stake is one owner of this client in the store. That is either a waiter (contending) or one who has
// the key (holding). At most one stake of a key contends, on behalf of the first waiter in this client.
// While an exclusive lease lasts, no other stake does anything. Readers may hold the key while another
// stake contends, for a writer or for readers on other terms.
type stake struct {
	key  *Key
	next *stake

	owner string // in the store: the waiter's or the holder's identity
	terms *Terms // that the owner was made with

	// At most one of them is set; with neither, the stake is out of use.
	attempt *Attempt // contending: a waiter, or a request to become one
	holding *Holding // holding the key
}

func (s *stake) isIdle() bool { return s.attempt == nil && s.holding == nil }

// share returns what the owner takes of the key: what it has, or else what the first waiter wants.
func (s *stake) share() store.Share {
	share := store.Share{Mode: s.terms.Mode}
	if share.Mode == store.Permits {
		share.Limit = s.terms.Limit
		if s.holding != nil {
			share.Weight = s.holding.block.held
		} else {
			share.Weight = s.key.waiters.first.Weight
		}
	}
	return share
}

// isShared reports whether the stake is for readers.
func (s *stake) isShared() bool { return s.terms.Mode == store.Shared }

// isTenure reports whether several leases may share the stake's holding, each by itself.
func (s *stake) isTenure() bool { return s.terms.Mode != store.Exclusive }

// ttl returns the TTL to request from the store. The time to wait for the store follows from the
// terms instead, because a short lease is no reason for short timeouts.
func (s *stake) ttl() time.Duration {
	if s.terms.MaxHold == 0 {
		return s.terms.TTL
	}
	return holdTTL(s.terms.TTL, max(s.terms.MaxHold, s.terms.MinHold))
}

// due returns when the stake has to be looked at.
func (s *stake) due() watchdog.Instant {
	switch {
	case s.attempt != nil:
		return s.attempt.due
	case s.holding != nil:
		return s.holdingDue()
	}
	return never
}

// alarm does the work that is due.
func (s *stake) alarm(st *Step) {
	if s.attempt != nil {
		s.attempt.due = never
		s.attemptDue(st)
	} else {
		s.tick(st)
	}
}

// forgetOwner ends the use of the owner id in this client. Later replies and events for this owner are
// ignored.
func (s *stake) forgetOwner() {
	s.key.host.DropOwner(s.owner)
	s.owner = ""
	s.attempt, s.holding = nil, nil
	s.key.remove(s)
}

// unused returns a stake that is out of use.
func (k *Key) unused() *stake {
	if k.stakes.isIdle() {
		return &k.stakes
	}
	s := &stake{key: k, next: k.stakes.next}
	k.stakes.next = s
	return s
}

// remove takes a stake out of the list, except for the first one.
func (k *Key) remove(s *stake) {
	for at := &k.stakes; at.next != nil; at = at.next {
		if at.next == s {
			at.next = s.next
			return
		}
	}
}

// stakeOf returns the stake of an owner, or nil if there is none any more.
func (k *Key) stakeOf(owner string) *stake {
	for s := &k.stakes; s != nil; s = s.next {
		if s.owner == owner && owner != "" {
			return s
		}
	}
	return nil
}

// contender returns the stake that contends, or nil.
func (k *Key) contender() *stake {
	for s := &k.stakes; s != nil; s = s.next {
		if s.attempt != nil {
			return s
		}
	}
	return nil
}

// retained returns the stake that has the key although nobody holds it, or nil.
func (k *Key) retained() *stake {
	for s := &k.stakes; s != nil; s = s.next {
		if s.isRetained() {
			return s
		}
	}
	return nil
}

// mayContend reports whether a stake may contend for w, the first waiter: none does already, no
// exclusive lease lasts, this client does not have all there is, and T4 does not hold it up.
func (k *Key) mayContend(w *Waiter) bool {
	if k.isHeldUp() {
		return false
	}
	for s := &k.stakes; s != nil; s = s.next {
		if s.attempt != nil || s.holding != nil && !s.isTenure() {
			return false
		}
	}
	return !k.hasAll(w)
}

// takeUp returns the stake that nobody has, and that w is to get, the first waiter, or that stands in its way, or nil.
// It takes back what lies. A reader joins a tenure that is open instead.
func (k *Key) takeUp(w *Waiter, st *Step) (found *stake) {
	if k.open(w, st.Now) != nil {
		return nil
	}
	k.recallFor(w, st)
	for s := &k.stakes; s != nil; s = s.next {
		free := s.isRetained() || s.holding != nil && s.isBlock() && s.spare(st.Now) > 0
		if free && (found == nil || *s.terms == *w.Terms) {
			found = s
		}
	}
	return found
}
