// SPDX-License-Identifier: Apache-2.0

package elect

import (
	"bytes"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// A sight is what an observer knows, from looks and from announcements. The rules are numbered in docs/design.md.
type sight struct {
	key     string
	leaders chan Leader   // has room for one
	asked   chan struct{} // has an element if a look is due at once
	changed chan struct{} // has an element if a term was announced

	mu      sync.Mutex
	live    bool // announcements come through
	closed  bool
	any     bool   // something is known
	last    Leader // what is known
	leader  int64  // the last term that was seen
	highest int64  // the largest number of a term, since terms went back
	seq     int64  // the largest number of a note of that term
	applied int    // how many announcements have changed something

	ended  int64     // the term whose end was announced last
	hidden time.Time // until when nothing but a later term counts after that

	// back is from when on a look that finds a smaller number than highest counts; zero: none has found one.
	back time.Time

	stats *Stats // nil: nothing is counted, or the channel is closed
}

func newSight(key string, stats *Stats) *sight {
	return &sight{
		key: key, leaders: make(chan Leader, 1), asked: make(chan struct{}, 1), changed: make(chan struct{}, 1), stats: stats,
	}
}

// announced applies an announcement. It is called by who receives it, and never waits.
func (s *sight) announced(a asynclock.Announcement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case a.Token < s.highest: // O1: late
	case a.Ended:
		s.endedLocked(a.Token)
	case a.Token == s.highest && a.Seq <= s.seq, s.hiddenLocked(a.Token): // O1, O2: late, or repeated
	default:
		s.highest, s.seq = a.Token, a.Seq
		s.applied++
		s.seeLocked(Leader{
			Key: s.key, Token: a.Token, Value: a.Data, Holder: a.Holder, Until: time.Now().Add(max(a.Remaining, shortest)),
		})
		raise(s.changed)
	}
}

// endedLocked applies the end of a term (O2). If that term is not the one that is known, its beginning was lost.
func (s *sight) endedLocked(token int64) {
	s.ended, s.hidden = token, time.Now().Add(asynclock.DefaultTTL)
	s.applied++
	if token == s.last.Token {
		s.hidden = latest(s.hidden, s.last.Until)
		s.seeLocked(Leader{Key: s.key})
	} else if token > s.highest {
		s.askLocked()
	}
}

// missed is called when announcements may have been missed.
func (s *sight) missed(live bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = live
	s.askLocked()
}

// begin returns what looked has to know about the beginning of a look.
func (s *sight) begin() (applied int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.applied
}

// looked applies what a look has found. It began after so many announcements.
func (s *sight) looked(found sighting, begun int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := found.leader
	isBehind := l.Token < s.highest || l.Token == s.highest && found.seq < s.seq
	switch {
	case isBehind && s.applied != begun: // O3
		s.askLocked()
	case l.Token == 0, s.hiddenLocked(l.Token): // O2: the store may hear of the end later
		s.seeLocked(Leader{Key: s.key})
	case l.Token < s.highest && !s.wentBackLocked(&l): // O1
		s.stats.unsure(s)
	default:
		s.highest, s.seq = l.Token, found.seq
		s.seeLocked(l)
	}
}

// failed is called when a look has found nothing out.
func (s *sight) failed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.unsure(s)
}

// hiddenLocked reports whether the term has ended by its own word, and the store may not have heard of it yet.
func (s *sight) hiddenLocked(token int64) bool {
	return token != 0 && token == s.ended && time.Now().Before(s.hidden)
}

// expiring is for how long after its time a store may still show a leader: the observer's clock began before the answer, and
// stores count in milliseconds.
const expiring = time.Second

// wentBackLocked reports whether a smaller number counts (O5): the store has shown smaller ones for longer than a leader
// of before could last there. Otherwise a server that was promoted may show the leader of before.
func (s *sight) wentBackLocked(l *Leader) bool {
	now := time.Now()
	if s.back.IsZero() {
		s.back = latest(now.Add(asynclock.DefaultTTL), l.Until.Add(expiring))
	}
	l.WentBack = !now.Before(s.back)
	return l.WentBack
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// seeLocked sends what is known, if that is new.
func (s *sight) seeLocked(l Leader) {
	s.stats.saw(s, l)
	if l.Token != 0 {
		s.back, s.leader = time.Time{}, l.Token
	}
	l.WentBack = l.WentBack || l.Token != 0 && l.Token == s.last.Token && s.last.WentBack
	same := s.any && l.Token == s.last.Token && l.Holder == s.last.Holder && bytes.Equal(l.Value, s.last.Value)
	s.any, s.last = true, l
	if same || s.closed {
		return
	}
	l.Value = bytes.Clone(l.Value) // the receiver may change it
	select {
	case <-s.leaders: // nobody has received it
	default:
	}
	s.leaders <- l // there is room, as nobody else sends
}

// askLocked has the observer look at once.
func (s *sight) askLocked() { raise(s.asked) }

// raise makes sure that the channel has an element.
func raise(signal chan<- struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}

// isLive reports whether announcements come through.
func (s *sight) isLive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live
}

// due returns when a look is due because a time is over that was not over at the last look; zero: at no certain time.
func (s *sight) due(looked time.Time) (due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range [...]time.Time{s.last.Until, s.back} {
		if at.After(looked) && (due.IsZero() || at.Before(due)) {
			due = at
		}
	}
	return due
}

// close closes the channel.
func (s *sight) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.stats.left(s)
	s.stats = nil
	close(s.leaders)
}
