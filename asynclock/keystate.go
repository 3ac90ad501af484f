// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A keyState is one key that this client uses: its machine, and what the machine has no part in. It
// exists from the first caller's arrival to the last one's departure.
//
// Package machine decides, and this package carries out. Each step of the machine is made under the
// shard's mutex, and so is what follows from it. Methods whose names end in Locked need the mutex.
type keyState struct {
	machine machine.Key
	entry   watchdog.Entry   // the machine's alarm
	due     watchdog.Instant // what it is set to; 0: it is not
	shard   *shard
}

// stateLocked returns the key's state, or makes one.
func (sh *shard) stateLocked(key string) *keyState {
	if s := sh.keys[key]; s != nil {
		return s
	}
	s := &keyState{shard: sh}
	s.machine.Begin(key, s, sh.client.traits(key), sh.leaving[key])
	s.entry.Task = s
	sh.keys[key] = s
	sh.client.enter()
	return s
}

// dropLocked removes the state of a key that nobody in this client uses any more.
func (s *keyState) dropLocked() {
	delete(s.shard.keys, s.machine.Name)
	s.shard.client.leave()
}

// stateOf returns the state that a machine belongs to.
func stateOf(k *machine.Key) *keyState {
	return k.Host().(*keyState) //nolint:forcetypeassert // the only type of host here
}

// begin begins a step of the machine. The caller then holds the mutex, until [keyState.end].
func (s *keyState) begin() machine.Step {
	s.shard.mu.Lock()
	return s.stepNow()
}

// end carries out what the step has decided.
func (s *keyState) end(st *machine.Step) {
	defer s.shard.mu.Unlock()
	s.carryOutLocked(st)
}

// stepNow returns a step for a caller that holds the mutex.
func (s *keyState) stepNow() machine.Step { return s.stepAt(watchdog.Refresh()) }

func (s *keyState) stepAt(now watchdog.Instant) machine.Step {
	c := s.shard.client
	return machine.Step{Now: now, Closing: c.closing.Load(), Keys: int(c.inUse.Load())}
}

// Fire does the work that is due. It runs on the watchdog's goroutine.
func (s *keyState) Fire(now watchdog.Instant) {
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	if s.due <= now { // otherwise another step has set it meanwhile
		s.due = 0
	}
	st := s.stepAt(now)
	s.machine.Alarm(&st)
	s.carryOutLocked(&st)
}

// carryOutLocked does what a step of the machine has decided.
func (s *keyState) carryOutLocked(st *machine.Step) {
	c := s.shard.client
	if st.TripSent != 0 {
		c.trips.measured(st.TripSent, st.Now, st.TripTTL, c.log)
	}
	for _, n := range st.Notes {
		c.log.Add(n.Level, n.Text, n.Attrs...)
	}
	for l := st.NextEnded(); l != nil; l = st.NextEnded() {
		leaseOf(l).endedLocked()
	}
	for w := st.NextDecided(); w != nil; w = st.NextDecided() {
		s.decidedLocked(w, st.Blocker)
	}
	s.setAlarmLocked()
	s.sendLocked(st)
	s.countStepLocked(st)
	if st.Dropped {
		s.dropLocked()
	}
}

// setAlarmLocked sets the watchdog to what the machine waits for.
func (s *keyState) setAlarmLocked() {
	at := s.machine.Due()
	if at == s.due {
		return
	}
	if s.due = at; at == 0 {
		s.shard.client.watchdog.Remove(&s.entry)
	} else {
		s.shard.client.watchdog.Set(&s.entry, at)
	}
}

// sendLocked sends a step's requests in the background.
func (s *keyState) sendLocked(st *machine.Step) {
	c := s.shard.client
	for r := st.NextRelease(); r != nil; r = st.NextRelease() {
		call := callOf(r)
		if !r.Withdrawal || c.background.Err() == nil {
			call.queue()
		} else {
			call.finish(nil) // closed: there is no session left
		}
	}
	for call := st.NextAcquire(); call != nil; call = st.NextAcquire() {
		c.send(call)
	}
	for r := st.NextRenewal(); r != nil; r = st.NextRenewal() {
		c.renewals.Add(laneFor(c.session.Lane(s.machine.Name), r.Timeout), r)
	}
}

// publicError returns the error in the words of the API.
func (s *keyState) publicError(err error) error {
	if held, ok := err.(*machine.HeldError); ok { //nolint:errorlint // it is never wrapped
		return &HeldError{
			Key: s.machine.Name, Holder: held.Holder, Token: held.Token, Remaining: held.Remaining, Waiters: held.Waiters,
			Used: held.Used, Limit: held.Limit,
		}
	}
	return err
}
