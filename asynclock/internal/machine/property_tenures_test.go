// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/store"
)

// Inputs that only tenures have, or parts of several keys.

// rest answers the release of a part of what a client has.
func (s *script) rest() {
	var given []int
	for i, r := range s.releases {
		if r.Request().Rest != nil && !s.rested[i] {
			given = append(given, i)
		}
	}
	if len(given) == 0 {
		return
	}
	i := rapid.SampledFrom(given).Draw(s.T, "release")
	s.rested[i] = true
	reply := rapid.SampledFrom([]store.ReleaseReply{{WasHeld: true}, {WasHeld: true}, {}, {Err: store.ErrOutcomeUnknown}}).Draw(s.T, "answer")
	s.make(func(w *world, st *machine.Step) []string {
		return []string{"rested: " + text(w.key.Rested(w.releases[i], &reply, st))}
	})
}

func (s *script) downgrade() {
	name := s.pick(func(c *caller) bool { return holds(c) && c.terms.Mode == store.Exclusive })
	if name != "" && s.mode == store.Shared {
		s.make(downgrade(name))
	}
}

func (s *script) answerDowngrade() {
	if s.downgraded == len(s.downgrades) {
		return
	}
	s.downgraded++
	var reply store.ReleaseReply
	switch rapid.SampledFrom([]string{"done", "done", "lost", "no answer"}).Draw(s.T, "answer") {
	case "done":
		reply = store.ReleaseReply{WasHeld: true, Grant: store.Grant{Token: s.next()}}
	case "no answer":
		reply.Err = store.ErrOutcomeUnknown
	}
	s.make(downgraded(s.downgraded, fmt.Sprintf("c%d", len(s.callers)), reply))
}

// part makes a lease a part of several keys, or what such a part goes through.
func (s *script) part() {
	name := s.pick(func(c *caller) bool { return holds(c) && c.lease.Err == nil && s.now < s.key.Until(c.lease) })
	if name == "" {
		return
	}
	l := s.callers[name].lease
	whole := l.Whole
	if whole == nil {
		whole = new(machine.Whole)
		whole.Gathering.Store(true)
		s.key.Adopt(l, whole)
		return
	}
	switch rapid.SampledFrom([]string{"complete", "over", "given back"}).Draw(s.T, "part") {
	case "complete":
		whole.Gathering.Store(false)
		s.key.Count(l, s.now)
	case "over":
		whole.Over.Store(true)
	case "given back":
		l.Disown()
	}
	s.make(alarm) // the shell's next step
}
