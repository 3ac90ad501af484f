// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// futures is what a key knows of futures, from the arrival of the first.
type futures struct {
	idle                 queue
	callers              callers          // of those that wait, idle or not
	nextIdle, nextQueued *Waiter          // are looked at next
	revival              watchdog.Instant // when those that are idle queue again
	came                 watchdog.Instant // when the last one came
	every                time.Duration    // how long that was after the one before
	lain                 watchdog.Instant // since when something lies
	lookAt               watchdog.Instant // when somebody else who receives is looked for
	lieUntil             watchdog.Instant // the end of the patience of others who want the key; 0: nothing new lay since the grant
	vain                 int8             // how often in a row the key lay in vain while others wanted it
}

// noFutures is that of a key that has seen none. It does not change.
var noFutures futures

// needsFutures makes room for w.
func (k *Key) needsFutures(w *Waiter) {
	if w.Future && k.futures == &noFutures {
		f := new(futures)
		k.futures, k.waiters.futures, f.idle.futures = f, f, f
	}
}

// arrives notes how often futures come.
func (f *futures) arrives(now watchdog.Instant) {
	if f.came != 0 {
		f.every = now.Sub(f.came)
	}
	f.came = now
}

// setAside makes a future idle whose result is not in its channel. A future that never waits fails instead. The last one
// set aside is the first to have a turn again.
func (k *Key) setAside(w *Waiter, st *Step) {
	w.Stage, w.Lease = Idle, nil
	switch {
	case st.Closing:
		st.fail(w, store.ErrClosed)
		return
	case w.Try:
		st.fail(w, &HeldError{Remaining: -1})
		return
	case w.Caller.IsGone():
		st.fail(w, ErrGone)
		return
	}
	if k.futures.idle.pushFront(w); k.futures.idle.n == 1 {
		k.reviveIn(k.pause(), st.Now)
	}
}

// pause returns after what time idle futures queue again: F5.
func (k *Key) pause() time.Duration {
	return min(firstPause<<(2*max(k.futures.vain-1, 0)), mostPause)
}

func (k *Key) reviveIn(pause time.Duration, now watchdog.Instant) {
	k.futures.revival = now.Add(pause)
}

// revive lets idle futures queue again. Where an exclusive key lies, those that it could lie with have their
// turn already.
func (k *Key) revive(st *Step) {
	var lying *stake
	for s := &k.stakes; s != nil; s = s.next {
		if s.isLying() && !s.isTenure() {
			lying = s
		}
	}
	for n := k.futures.idle.n; n > 0; n-- {
		switch w := k.futures.idle.pop(); {
		case w.Caller.IsGone():
			st.fail(w, ErrGone)
		case lying != nil && *w.Terms == *lying.terms:
			k.futures.idle.push(w)
		default:
			w.Stage = Queued
			k.waiters.push(w)
		}
	}
	k.futures.revival = st.Now.Add(mostPause) // if any are left
	if k.waiters.first != nil {
		k.revived(st)
	}
}

// revived has what nobody has given back for those who queue again.
func (k *Key) revived(st *Step) {
	for s := &k.stakes; s != nil; {
		next := s.next
		if s.isRetained() || s.isLying() {
			s.yield(st)
		}
		s = next
	}
	if s := k.contender(); s != nil {
		s.watchTrouble(st.Now)
	}
}

// requeueIdle lets idle futures queue again at once.
func (k *Key) requeueIdle() {
	for w := k.futures.idle.pop(); w != nil; w = k.futures.idle.pop() {
		w.Stage = Queued
		k.waiters.push(w)
	}
}

// sweep ends some futures that nobody can receive from any more. Each arrival sweeps more than the one future that
// it may leave behind, so they don't add up.
func (k *Key) sweep(n int32, st *Step) {
	if k.futures == &noFutures {
		return
	}
	for _, q := range [...]*queue{&k.waiters, &k.futures.idle} {
		for range min(n, q.n) {
			if w := q.look(); w != nil && w.Future && w.Caller.IsGone() {
				q.remove(w)
				st.fail(w, ErrGone)
			}
		}
	}
}

// fewSwept is how many futures of each queue an arrival looks at.
const fewSwept int32 = 3
