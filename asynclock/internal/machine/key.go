// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/asynclock/asynclock-go/watchdog"
)

// A Key is all that a client knows about one key while the key is in use: the waiters in this client,
// and the one thing that this client has in the store. That is either a waiter (contending) or the key
// (holding). The Key exists from the first caller's arrival to the last one's departure.
//
// The shell's mutex guards it and everything it refers to.
type Key struct {
	Name string
	host Host

	waiters queue

	owner string // in the store: the waiter's or the holder's identity
	terms *Terms // that the owner was made with

	// At most one of them is set; with neither, the key is out of use.
	attempt *Attempt // contending: a waiter, or a request to become one
	holding *Holding // holding the key
}

// Begin makes k the machine of the key with this name. K is the zero Key.
func (k *Key) Begin(name string, host Host) { k.Name, k.host = name, host }

// Host returns the key's host.
func (k *Key) Host() Host { return k.host }

// A Host is what one key's machine has of its client: what can't be computed from inputs.
type Host interface {
	// NewOwner returns a secret that no other owner has. From now on notifications for this owner are
	// inputs of this key.
	NewOwner() string
	// DropOwner ends that.
	DropOwner(owner string)
	// NewHolding returns memory for a holding with its first lease, usually its only one, which is
	// for w.
	NewHolding(w *Waiter) (*Holding, *Lease)
	// NewLease returns memory for one more lease, which is for w.
	NewLease(w *Waiter) *Lease
	// NewRelease returns memory for a release. The client counts it until it has been answered.
	NewRelease() *Release
	// TakeBack takes a future's result back. It reports false if its caller has received it already.
	TakeBack(w *Waiter) bool
	// Lane is the number of the lane in which the key's requests share calls.
	Lane() int
	// Keys is how many keys the client uses.
	Keys() int
	// Closing reports whether the client is being closed.
	Closing() bool
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
}

// ttl returns the TTL to request from the store. The time to wait for the store follows from the
// terms instead, because a short lease is no reason for short timeouts.
func (k *Key) ttl() time.Duration {
	if k.terms.MaxHold == 0 {
		return k.terms.TTL
	}
	return holdTTL(k.terms.TTL, max(k.terms.MaxHold, k.terms.MinHold))
}

// Idle reports whether nobody uses the key: it is new, or is about to be dropped.
func (k *Key) Idle() bool { return k.attempt == nil && k.holding == nil }

// forgetOwner ends the use of the owner id in this client. Later replies and events for this owner are
// ignored.
func (k *Key) forgetOwner(fx *Effects) {
	if k.attempt != nil {
		k.attempt.settle(fx, nil)
	}
	k.host.DropOwner(k.owner)
	k.owner = ""
	k.attempt, k.holding = nil, nil
	fx.setAlarm(0)
}

// Alarm does the work that is due.
func (k *Key) Alarm(now watchdog.Instant, fx *Effects) {
	switch { // neither: it ended while the watchdog was on its way
	case k.attempt != nil:
		k.attemptDue(now, fx)
	case k.holding != nil:
		k.tick(now, fx)
	}
}
