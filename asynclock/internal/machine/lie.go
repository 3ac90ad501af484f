// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// Futures. The receiver of a result owns the lease from that moment. A lease that nobody has received lies in
// its channel, and is the client's: it can be taken back at any time. Its rules are numbered in
// docs/design.md, F1 to F6.
//
// A future whose result was taken back, or that the next one was preferred to, is idle. It is still pending.
const (
	patience     = 100 * time.Millisecond // F4: how long a lease lies although others want the key
	firstLook    = time.Millisecond       // F2: how long a caller may take to receive before others come first
	nextLook     = 10 * time.Millisecond  // and how long the next one may take
	laterLook    = 50 * time.Millisecond  // when the lease has lain for the patience
	lastLook     = 250 * time.Millisecond // and when it has lain for ten seconds
	firstPause   = 250 * time.Millisecond // F5: the pause of idle futures after a lease has lain in vain
	mostPause    = 30 * time.Second
	unaskedPause = time.Second // if nobody is known to want the key, because the store does not tell
	unaskedTime  = 10 * time.Second
	watchTime    = 250 * time.Millisecond // after which a renewal asks such a store who waits

	mostTries int32 = 1024 // how many futures are tried in one step
	fewTries  int32 = 16   // how many idle ones before those in the queue
)

// isLying reports whether something lies that could go to others: an exclusive lease, or one of a tenure.
func (s *stake) isLying() bool {
	return s.holding != nil && s.holding.lease != nil && (s.holding.lease.lying != nil || s.isTenure() && s.holding.lease.lies > 0)
}

// isContested reports whether anybody is known to want the key who does not get it while something lies. A store
// without a queue says of every key that somebody waits.
func (s *stake) isContested() bool { return s.isContestedElsewhere() || s.isContestedHere() }

func (s *stake) isContestedElsewhere() bool {
	return s.holding.requested || s.holding.cohort.waited && s.key.Queues
}

// isContestedHere is isContested by a waiter of this client.
func (s *stake) isContestedHere() bool {
	w := s.key.waiters.first
	return w != nil && s.excludes(w)
}

// lieEnds returns until when something may lie: F4. If the store does not tell who wants the key, somebody may. But
// beside readers who have it, one that lies is in nobody's way.
func (s *stake) lieEnds() watchdog.Instant {
	h, f := s.holding, s.key.futures
	switch briefly := s.isContestedHere() && s.key.waiters.calls > 0; {
	case briefly && s.isContestedElsewhere():
		return min(f.lain.Add(firstLook), max(f.lieUntil, 1))
	case briefly:
		return f.lain.Add(firstLook)
	case s.isContested():
		return max(f.lieUntil, 1)
	case h.notified || s.isShared() && h.lease.joined > h.lease.lies:
		return never
	}
	if s.key.Queues { // whoever waits is found by renewals: only a TryLock is not
		return f.lain.Add(unaskedTime)
	}
	// A loop that looks at a new future from time to time is to find the result there.
	return f.lain.Add(min(max(2*f.every, patience), 10*patience))
}

// watchAt returns when a lease that lies is to be renewed, so that a waiter elsewhere is found. A lease was renewed,
// or granted, at that time.
func (s *stake) watchAt(renewed watchdog.Instant) watchdog.Instant {
	if !s.holding.notified && s.key.Queues {
		return renewed.Add(watchTime)
	}
	return watchfulSchedule(s.ttl(), int(s.key.Lane)).renewAt(renewed) // as if it were retained
}

func (s *stake) mayLie(now watchdog.Instant) bool { return now < s.lieEnds() }

// beginPatience begins the patience of others. It has one beginning for each grant.
func (f *futures) beginPatience(now watchdog.Instant) {
	if f.lain = now; f.lieUntil == 0 {
		f.lieUntil = now.Add(patience)
	}
}

// takeBack takes back a lease that lies. Its future is in no queue then. It reports false if the lease was
// received: it is the receiver's.
func (s *stake) takeBack(l *Lease, st *Step) bool {
	h, w := s.holding, l.lying
	if !w.Caller.TakeBack() {
		s.claim(w, st)
		return false
	}
	l.lying, w.Lease = nil, nil
	if l.root != nil {
		l.root.lies--
		l.separate()
		h.unseen = s.isTenure() && l.root.joiner == nil && l.root.claimed == 0
		return true
	}
	h.lease, h.unseen, h.retained = nil, true, 0
	return true
}

// recall takes back all that lies. The futures are idle then; each has its turn after those that are so
// already. It reports false if anything was received.
func (s *stake) recall(st *Step) (all bool) {
	root := s.holding.lease
	all = true
	if root.lying != nil {
		return s.recallOne(root, st)
	}
	for j := root.joiner; j != nil && root.lies > 0; {
		earlier := j.earlier
		if j.lying != nil {
			all = s.recallOne(j, st) && all
		}
		j = earlier
	}
	return all
}

func (s *stake) recallOne(l *Lease, st *Step) bool {
	k, w := s.key, l.lying
	if !s.takeBack(l, st) {
		return false
	}
	if k.setAside(w, st); w.Stage == Idle {
		k.futures.idle.remove(w)
		k.futures.idle.push(w)
	}
	return true
}

// recallFor takes back what keeps w from the key, the first waiter: F3.
func (k *Key) recallFor(w *Waiter, st *Step) {
	closed := k.liesClosed(w, st)
	for s := &k.stakes; s != nil; s = s.next {
		switch {
		case !s.isLying():
		case s.isShared() && s.terms.Mode == w.Terms.Mode && s != closed && (*w.Terms != *s.terms || s.isJoinable() || s.holding.lease.joined > s.holding.lease.lies): // in nobody's way
		case s.isShared() && w.Try && s.holding.lease.joined > s.holding.lease.lies: // it is refused anyway
		case w.Future && !w.Try && s.mayBeReceived(st.Now):
		case st.Now >= s.holding.deadline: // its alarm is late
		default:
			s.recall(st)
			if s.isShared() && s.holding.lease.joiner == nil {
				s.holding.lease, s.holding.retained = nil, 0
			}
		}
	}
}

// liesClosed returns a tenure that the reader w could have, if it was not closed, and that nobody has any of; or nil.
func (k *Key) liesClosed(w *Waiter, st *Step) *stake {
	for s := &k.stakes; s != nil; s = s.next {
		if s.isLying() && s.isShared() && s.isUsable(w, st.Now) && s.holding.closed && !s.holding.long {
			s.notice(st)
			if root := s.holding.lease; root.lies > 0 && root.joined == root.lies {
				return s
			}
		}
	}
	return nil
}

// mayOvertake reports whether w may have what lies before those in the queue: F3. These are futures that nobody received
// from when they could have had it. Permits are requested for them, so for these one that never waits is not preferred.
func (k *Key) mayOvertake(w *Waiter, now watchdog.Instant) bool {
	if k.waiters.calls > 0 || w.Try && w.Terms.Mode != store.Exclusive {
		return false
	}
	for s := &k.stakes; s != nil; s = s.next {
		if s.isLying() && s.isUsable(w, now) && s.mayLie(now) {
			return !s.isBlock() || s.hasRoomIn(k.waiters.first) && k.hasRoomFor(w) // P5
		}
	}
	return false
}

// isNew reports whether w has come just now, so that its caller may be about to receive: F2.
func (w *Waiter) isNew(now watchdog.Instant) bool { return now.Sub(w.Since) < firstLook }

// mayBeReceived reports whether something lies with a future that has come just now. Of several, the last one counts.
func (s *stake) mayBeReceived(now watchdog.Instant) bool {
	l := s.holding.lease
	if l.joiner != nil {
		l = l.joiner
	}
	return l.lying != nil && l.lying.isNew(now)
}

// nextLook returns when something that lies is looked at.
func (s *stake) nextLook() watchdog.Instant {
	at := s.lieEnds()
	if !s.isShared() && s.key.hasTaker(s.terms) {
		at = min(at, s.key.futures.lookAt)
	}
	return at
}
