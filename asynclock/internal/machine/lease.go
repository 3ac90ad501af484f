// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A Lease is one holding of a key by one caller.
type Lease struct {
	Caller any // the shell's; the machine does not look at it
	Token  int64
	Owner  string // in the store; Unlock still needs it after a loss
	Terms  *Terms
	Err    error // why it ended; nil while it lasts
	*Ties        // call tie before a change

	until watchdog.Instant // the trust deadline at the time of the end
	next  *Lease

	Weight    int32 // Permits: how many it has; of a root, how many its leases have
	unlocked  bool  // Unlock was called
	uncertain bool  // of Owner; see Attempt
	Counted   uint8 // the shell's; the machine does not look at it
}

// Ties are what most leases lack: what ties a lease to others, and what bounds its hold.
type Ties struct {
	Whole   *Whole           // that the lease is a part of; nil if none
	root    *Lease           // the lease that this one joined; nil if none
	joiner  *Lease           // the last lease that joined this one and is not unlocked yet
	earlier *Lease           // the lease that joined the same lease before this one
	later   *Lease           // the lease that joined it after this one
	lying   *Waiter          // the future in whose channel it lies; nil: its caller has it
	claimed watchdog.Instant // if its hold has a bound, or it is of a tenure: when its caller got it
	bound   watchdog.Instant // the end by MaxHold; 0: none
	joined  int32            // how many leases have joined this one and are not unlocked
	lies    int32            // how many of these lie in a channel
}

// noTies are those of a lease that has none. They do not change.
var noTies Ties

// begin makes l a lease of an owner.
func (l *Lease) begin(token int64, owner string, terms *Terms, uncertain bool) {
	l.Token, l.Owner, l.Terms, l.uncertain = token, owner, terms, uncertain
	if l.Ties == nil {
		l.Ties = &noTies
	}
}

// tie gives l ties of its own, which may change.
func (l *Lease) tie() {
	if l.Ties == &noTies {
		l.Ties = new(Ties)
	}
}

func (l *Lease) link() **Lease { return &l.next }

// A Whole is a lease over several keys. Its parts are leases of different keys, whose machines only
// read it.
type Whole struct {
	Caller any // the shell's; the machine does not look at it

	Over      atomic.Bool // it has ended
	Gathering atomic.Bool // its parts are not complete yet
}

// Until returns the trust deadline.
func (k *Key) Until(l *Lease) watchdog.Instant {
	if l.Err != nil {
		return l.until
	}
	return k.stakeOf(l.Owner).holding.end()
}

// Check compares a lease's trust deadline with the true time. If the deadline has passed, the lease
// ends here and now, even if its alarm has not come yet. Check reports whether the lease lasts, and
// for longer than margin.
func (k *Key) Check(l *Lease, margin time.Duration, st *Step) bool {
	defer k.reconcile(st)
	return k.check(l, margin, st)
}

func (k *Key) check(l *Lease, margin time.Duration, st *Step) bool {
	if l.Err != nil {
		return false
	}
	until := k.Until(l)
	if st.Now >= until {
		k.stakeOf(l.Owner).tick(st)
		return false
	}
	return until.Sub(st.Now) > margin
}

// holdBack returns for how much longer MinHold holds the key back.
func (l *Lease) holdBack(now watchdog.Instant) time.Duration {
	if l == nil || l.lying != nil || l.Terms.MinHold == 0 {
		return 0
	}
	return max(l.Terms.MinHold-now.Sub(l.claimed), 0)
}

// end ends one lease with a reason.
func (s *stake) end(l *Lease, reason error, st *Step) {
	if l.Err != nil {
		return
	}
	l.until = s.holding.end()
	l.Err = reason
	st.ended.push(l)
}

// endAll ends a lease and all leases that joined it.
func (s *stake) endAll(l *Lease, reason error, st *Step) {
	s.end(l, reason, st)
	for j := l.joiner; j != nil; j = j.earlier {
		s.end(j, reason, st)
	}
}

// Unlock ends a lease. It returns the release for the caller to send, or nil if there is none to wait
// for. Err is then the answer. Again says that the lease had been unlocked before, and nothing else
// counts.
func (k *Key) Unlock(l *Lease, st *Step) (r *Release, again bool, err error) {
	again, err = k.unlock(l, st)
	k.reconcile(st)
	return st.release, again, err
}

func (k *Key) unlock(l *Lease, st *Step) (again bool, err error) {
	k.check(l, 0, st)
	if l.unlocked {
		return true, nil
	}
	last := l.markUnlocked()
	s := k.stakeOf(l.Owner)
	switch {
	case l.Err == nil:
		s.end(l, ErrUnlocked, st)
		st.unlocks = s
		s.lessOne(st)
		return false, nil
	case last && !errors.Is(l.Err, store.ErrClosed):
		// Now everyone has noticed the loss. If the store still keeps the key, it need not do so
		// for the rest of the TTL.
		k.withdraw(store.ReleaseRequest{
			Key: k.Name, Owner: l.Owner, Token: l.Token, HoldBack: l.holdBack(st.Now), Uncertain: l.uncertain,
		}, l.Terms.TTL, st)
	}
	return false, l.Err
}

// markUnlocked records that this lease was unlocked. It reports whether this was the last of the
// leases that share the holding.
func (l *Lease) markUnlocked() bool {
	l.unlocked = true
	root := l
	if l.root != nil {
		root = l.root
		l.separate()
	}
	return root.unlocked && root.joiner == nil
}

// separate takes a lease from those that joined the same one.
func (l *Lease) separate() {
	root := l.root
	root.joined--
	root.Weight -= l.Weight
	if l.later == nil {
		root.joiner = l.earlier
	} else {
		l.later.earlier = l.earlier
	}
	if l.earlier != nil {
		l.earlier.later = l.later
	}
}

// isWanted reports whether the holding that l stands for is of use to anybody. It is not if all its
// leases are parts of a Whole that has ended.
func (l *Lease) isWanted() bool {
	if l.Err == nil && (l.Whole == nil || !l.Whole.Over.Load()) {
		return true
	}
	for j := l.joiner; j != nil; j = j.earlier {
		if j.Whole == nil || !j.Whole.Over.Load() {
			return true
		}
	}
	return false
}

// isGathered reports whether l is a part of a Whole that is not complete. Such a part is renewed even
// without renewal. It would otherwise be about to end when the last one comes.
func (l *Lease) isGathered() bool { return l != nil && l.Whole != nil && l.Whole.Gathering.Load() }

// Adopt makes l a part of a Whole that no caller has yet. It is renewed, and its maximum hold does not
// count. Adopt reports false if the lease has ended.
func (k *Key) Adopt(l *Lease, whole *Whole) bool {
	l.tie()
	l.Whole = whole
	if l.Err != nil {
		return false
	}
	if l.root == nil {
		l.bound = 0 // it counts from Count
	}
	return true
}

// Disown makes l a lease that is no part, and that nobody has held.
func (l *Lease) Disown() {
	l.tie()
	l.Whole = nil
	if l.root == nil {
		l.claimed = 0 // long ago: no minimum hold is left
	}
}

// IsContested reports whether anybody else wants the key of a part.
func (k *Key) IsContested(l *Lease) bool {
	s := k.stakeOf(l.Owner)
	return s != nil && s.holding != nil && (l.root == nil || l.root.unlocked) && (s.isContested() || !s.holding.notified || k.waiters.first != nil)
}

// Count lets the bounds of a part count from now.
func (k *Key) Count(l *Lease, now watchdog.Instant) {
	if l.Err != nil || l.root != nil {
		return
	}
	l.countBounds(now)
}

// countBounds lets the bounds of a lease's hold count from now, if it has any.
func (l *Lease) countBounds(now watchdog.Instant) {
	if l.Terms.MinHold == 0 && l.Terms.MaxHold == 0 {
		return
	}
	l.tie()
	if l.claimed = now; l.Terms.MaxHold > 0 {
		l.bound = now.Add(l.Terms.MaxHold)
	}
}

// Root returns the lease that l joined, or l itself if it joined none.
func (l *Lease) Root() *Lease {
	if l.root != nil {
		return l.root
	}
	return l
}

// Lasting returns a lease that shares the holding of l and has not ended, or nil.
func (l *Lease) Lasting() *Lease {
	root := l.Root()
	if root.Err == nil {
		return root
	}
	for j := root.joiner; j != nil; j = j.earlier {
		if j.Err == nil {
			return j
		}
	}
	return nil
}

// Joined reports whether the lease joined another by re-entry.
func (l *Lease) Joined() bool { return l.root != nil }
