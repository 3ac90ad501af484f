// SPDX-License-Identifier: Apache-2.0

package elect

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// Stats counts what an election came to in this process: the terms of its candidates, and what its observers see. The
// zero Stats is ready. It may serve several calls and any number of goroutines. It must not be copied.
//
//	var scheduler elect.Stats
//	expvar.Publish("scheduler", expvar.Func(func() any { return scheduler.Counts() }))
//	err := elect.Run(ctx, locks, "scheduler", lead, elect.WithStats(&scheduler))
type Stats struct {
	mu     sync.Mutex
	counts Counts       // of what is over
	spans  map[any]span // what goes on: by *Term and *sight
}

// Counts is what a [Stats] has counted since it was made. Counts can be compared. Times go on while they are read.
//
// Terms is the sum of Resigned, Lost and Leading. The numbers of observers are sums over all of them, so give each key
// that is observed a Stats of its own.
type Counts struct {
	// Terms is how many terms have begun here. A term of [Campaign] that nobody has received counts, too.
	Terms int64 `json:"terms"`
	// Resigned is how many of them this process has ended: by Resign or Unlock, by the return or a panic of the
	// function of [Run], or by Close of the client. A loss that only the unlock finds out counts here, too.
	Resigned int64 `json:"resigned"`
	// Lost is how many of them were lost.
	Lost int64 `json:"lost"`
	// Leading is how many of them last now.
	Leading int64 `json:"leading"`
	// Led is how long all of them together have lasted.
	Led time.Duration `json:"led_ns"`

	// Changes is how often an observer saw another term than the one before, of the same candidate or not. Nobody in
	// between makes no difference, and neither does a new value.
	Changes int64 `json:"changes"`
	// WentBack is how often the number of such a term was smaller ([Leader]).
	WentBack int64 `json:"went_back"`
	// Leaderless is for how long nobody led, as an observer saw it: from when it was told so until it was told of a leader.
	// A leader that died leads until its time is over. Time in Unknown is not in it.
	Leaderless time.Duration `json:"leaderless_ns"`
	// LeaderlessNow is since how long nobody leads now. It is 0 if somebody leads, or if it is unknown.
	LeaderlessNow time.Duration `json:"leaderless_now_ns"`
	// Unknown is for how long an observer did not know whether anybody leads. It begins when a look has failed, so a
	// store may have been silent since the look before. If a leader was known, it begins when its Until has passed: the
	// leader may have gone by then, or have renewed its term unseen. It ends when a look or an announcement says who
	// leads, or that nobody does.
	Unknown time.Duration `json:"unknown_ns"`
}

// Counts returns what was counted so far. It costs no request. A nil Stats has counted nothing.
func (s *Stats) Counts() Counts {
	if s == nil {
		return Counts{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts
	for _, sp := range s.spans {
		lasted := sp.add(&c)
		switch sp.kind {
		case leading:
			c.Leading++
		case leaderless:
			c.LeaderlessNow = max(c.LeaderlessNow, lasted)
		}
	}
	return c
}

// WithStats counts in s what the call comes to. Default: nothing is counted. A nil s is [asynclock.ErrInvalidOption].
func WithStats(s *Stats) Option {
	return func(o *settings) error {
		if s == nil {
			return fmt.Errorf("%w: nil stats", asynclock.ErrInvalidOption)
		}
		o.stats = s
		return nil
	}
}

// A span is a time that goes on. It may begin in the future.
type span struct {
	kind kind
	from time.Time
}

type kind int

const (
	leading    kind = iota // a term of this process
	leaderless             // an observer sees nobody
	unknown                // an observer knows nothing
)

// add adds a span to the counts, and returns how long it has lasted.
func (sp span) add(c *Counts) time.Duration {
	lasted := max(time.Since(sp.from), 0)
	switch sp.kind {
	case leading:
		c.Led += lasted
	case leaderless:
		c.Leaderless += lasted
	case unknown:
		c.Unknown += lasted
	}
	return lasted
}

// change changes what is counted. A nil Stats counts nothing.
func (s *Stats) change(change func()) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// beginLocked begins a span of a term or an observer. One of the same kind goes on.
func (s *Stats) beginLocked(of any, sp span) {
	if before, goesOn := s.spans[of]; goesOn && before.kind == sp.kind {
		return
	}
	s.endLocked(of)
	if s.spans == nil {
		s.spans = make(map[any]span)
	}
	s.spans[of] = sp
}

// endLocked ends what a term or an observer goes on with, if anything.
func (s *Stats) endLocked(of any) {
	if sp, goesOn := s.spans[of]; goesOn {
		sp.add(&s.counts)
		delete(s.spans, of)
	}
}

// begun counts a term that has begun.
func (s *Stats) begun(t *Term) {
	s.change(func() {
		s.counts.Terms++
		s.beginLocked(t, span{leading, time.Now()})
	})
}

// ended counts a term that has ended, or is about to be unlocked.
func (s *Stats) ended(t *Term) {
	isLost := errors.Is(t.Err(), asynclock.ErrLost)
	s.change(func() {
		if isLost {
			s.counts.Lost++
		} else {
			s.counts.Resigned++
		}
		s.endLocked(t)
	})
}

// saw counts what an observer was told, or has found.
func (s *Stats) saw(o *sight, l Leader) {
	s.change(func() {
		if l.Token == 0 {
			s.beginLocked(o, span{leaderless, time.Now()})
			return
		}
		s.endLocked(o)
		if o.leader != 0 && o.leader != l.Token {
			s.counts.Changes++
		}
		if l.WentBack {
			s.counts.WentBack++
		}
	})
}

// unsure counts the time of an observer as unknown, behind that of the leader that it knows.
func (s *Stats) unsure(o *sight) {
	s.change(func() { s.beginLocked(o, span{unknown, latest(time.Now(), o.last.Until)}) })
}

// left ends the time of an observer.
func (s *Stats) left(o *sight) { s.change(func() { s.endLocked(o) }) }
