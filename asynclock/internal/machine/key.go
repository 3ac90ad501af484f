// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A Key is all that a client knows about one key while the key is in use: the waiters in this client,
// and what this client has in the store. The Key exists from the first caller's arrival to the last
// one's departure.
//
// The shell's mutex guards it and everything it refers to.
type Key struct {
	Name string
	host Host

	waiters  queue
	futures  *futures // those that are idle, and how the key lies
	requests uint32   // how many were made
	leaving  int32    // how many releases of [Release.Leaves] the next try waits for
	Traits
	used    bool  // somebody has come, and the key was not dropped since
	Counted Use   // the shell's; the machine does not look at it
	stakes  stake // the first of them. An exclusive lock needs no other.
}

// Traits are what does not change about a key.
type Traits struct {
	Lane         int32 // the number of the lane in which its requests share calls
	Queues       bool  // the store has a queue, so that it knows who waits
	TriesRequeue bool  // a release may take the request of a try with it
}

// Begin makes k the machine of the key with this name. K is the zero Key. Leaving is how many releases of
// [Release.Leaves] have not been followed by [Key.Left] yet.
func (k *Key) Begin(name string, host Host, traits Traits, leaving int) {
	k.Name, k.host, k.Traits = name, host, traits
	k.futures = &noFutures
	k.leaving = int32(leaving) //nolint:gosec // there are not as many
	k.stakes.key = k
}

// Host returns the key's host.
func (k *Key) Host() Host { return k.host }

// A Host is what one key's machine has of its client: what can't be computed from inputs.
type Host interface {
	// NewOwner returns a secret that no other owner has. From now on notifications for this owner are
	// inputs of this key.
	NewOwner() string
	// DropOwner ends that.
	DropOwner(owner string)
	// NewRelease returns memory for a release. The client counts it until it has been answered.
	NewRelease() *Release
	// Leaves says that [Release.Leaves] marks one more release of the key. [Key.Left] follows.
	Leaves()
	// BeginsTenure says that l is the root of a tenure, which no caller gets.
	BeginsTenure(l *Lease)
	// TellEnded tells everybody that a lease has ended.
	TellEnded(l *Lease)
}

// A Caller is what one key's machine has of somebody who waits.
type Caller interface {
	// NewHolding returns memory for a holding with its first lease, usually its only one, which is the caller's.
	NewHolding() (*Holding, *Lease)
	// NewLease returns memory for one more lease, which is the caller's.
	NewLease() *Lease
	// Send puts a future's result into its channel. It reports whether somebody has received it at once.
	Send() bool
	// Lies reports whether a future's result is still in its channel.
	Lies() bool
	// TakeBack takes a future's result back. It reports false if somebody has received it already.
	TakeBack() bool
	// IsGone reports whether nobody can receive a future's result any more, or its error.
	IsGone() bool
	// Bound returns the channel that ends a future's wait, of the context that the caller gave; nil if none does.
	Bound() <-chan struct{}
}

// Terms are what the store is asked for. They are comparable, because a lease passes from waiter to
// waiter inside a client only between equal terms.
type Terms struct {
	TTL        time.Duration
	MaxHold    time.Duration // 0: no bound
	MinHold    time.Duration
	Retention  time.Duration // 0: none
	Renew      bool
	QueueLimit int
	Holder     string
	Mode       store.Mode
	Limit      int32 // Permits: how many there are, as this client believes
}

// Alarm does the work that is due.
func (k *Key) Alarm(st *Step) {
	defer k.reconcile(st)
	for s := &k.stakes; s != nil; {
		next := s.next
		if s.due() <= st.Now {
			s.alarm(st)
		}
		s = next
	}
	if k.futures.idle.n > 0 && k.futures.revival <= st.Now {
		k.revive(st)
	}
}

// Due returns when [Key.Alarm] is due, after each step; 0: never.
func (k *Key) Due() watchdog.Instant {
	at := never
	if k.futures.idle.n > 0 {
		at = k.futures.revival
	}
	for s := &k.stakes; s != nil; s = s.next {
		at = min(at, s.due())
	}
	if at == never {
		return 0
	}
	return at
}

// IsUnused reports whether nobody uses the key: it is new, or is about to be dropped.
func (k *Key) IsUnused() bool {
	return k.hasNothing() && k.waiters.first == nil && k.futures.idle.n == 0
}

// hasNothing reports whether this client has nothing of the key in the store, and asks for nothing.
func (k *Key) hasNothing() bool { return k.stakes.isUnused() && k.stakes.next == nil }

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
