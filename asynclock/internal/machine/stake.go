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

func (s *stake) isUnused() bool { return s.attempt == nil && s.holding == nil }

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
	if k.stakes.isUnused() {
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

// isBlock reports whether the stake is for permits.
func (s *stake) isBlock() bool { return s.terms.Mode == store.Permits }

// free returns how many permits of the block nobody uses. P1: a lease lies in one block.
func (s *stake) free() int32 { return s.holding.block.kept - s.holding.lease.Weight }

// spare returns how many permits of the block nobody uses and nothing keeps back. Leases with a minimum hold have begun
// together, so that of each ends at the same time.
func (s *stake) spare(now watchdog.Instant) int32 {
	if s.holding.lease.joiner != nil && s.holding.lease.holdBack(now) > 0 {
		return 0
	}
	return s.free()
}

// isJoinable reports whether leases can join a tenure on these terms. S7, P10: a lease with a maximum or
// minimum hold, or without renewal, has an end of its own.
func (s *stake) isJoinable() bool {
	return s.terms.Renew && s.terms.MaxHold == 0 && s.terms.MinHold == 0 || s.holding != nil && s.holding.unseen
}

// endTogether reports whether leases on these terms end together if they begin together: their holds have one bound.
// So a grant can serve several of them: S7, P10. Until all have ended, the client keeps back what a minimum hold keeps.
// That is short enough for the store to keep it if the client dies: see trust in a grant by message.
func (s *stake) endTogether() bool {
	t := s.terms
	return t.Renew && (t.MaxHold > 0 || t.MinHold > 0) && t.MinHold <= heartbeat(t.TTL)
}

// mayShare reports whether the lease of w can share the tenure.
func (s *stake) mayShare(w *Waiter) bool { return s.isJoinable() || s.holding.together && !w.Future }

func (s *stake) isRetained() bool { return s.holding != nil && s.holding.lease == nil }
