// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"log/slog"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// Effects are what the shell has to do after a step, before the next step of the same key. They live on
// the stack of the caller.
type Effects struct {
	Dropped bool // nobody uses the key any more

	TripSent watchdog.Instant // when a request was sent whose answer has just come; 0: none
	TripTTL  time.Duration    // the TTL that its round trip has to fit

	Notes []Note // for the log

	acquires list[Acquire, *Acquire]
	renewals list[Renewal, *Renewal]
	releases list[Release, *Release]
	decided  list[Waiter, *Waiter]
	ended    list[Lease, *Lease]
}

// A Note is a line for the log.
type Note struct {
	Level slog.Level
	Text  string
	Attrs []slog.Attr
}

// NextAcquire returns the next request to be sent in the background, or nil.
func (fx *Effects) NextAcquire() *Acquire { return fx.acquires.pop() }

// NextRenewal returns the next renewal to be sent in the background, or nil.
func (fx *Effects) NextRenewal() *Renewal { return fx.renewals.pop() }

// NextRelease returns the next release to be sent in the background, or nil.
func (fx *Effects) NextRelease() *Release { return fx.releases.pop() }

// NextDecided returns the next waiter that has a result, or nil.
func (fx *Effects) NextDecided() *Waiter {
	w := fx.decided.pop()
	if w != nil {
		w.decided = false
	}
	return w
}

// NextEnded returns the next lease that has ended, or nil.
func (fx *Effects) NextEnded() *Lease { return fx.ended.pop() }

func (fx *Effects) note(level slog.Level, text string, attrs ...slog.Attr) {
	fx.Notes = append(fx.Notes, Note{level, text, attrs})
}

// measured notes a round trip that has ended.
func (fx *Effects) measured(sent watchdog.Instant, ttl time.Duration) {
	fx.TripSent, fx.TripTTL = sent, ttl
}

// withdraw ends, in the background, everything that an owner has in the store.
func (k *Key) withdraw(request store.ReleaseRequest, ttl time.Duration, now watchdog.Instant, fx *Effects) {
	k.leaves(k.withdrawal(request, ttl, now, fx))
}

// withdrawal is withdraw for a release that may take the next request with it.
func (k *Key) withdrawal(request store.ReleaseRequest, ttl time.Duration, now watchdog.Instant, fx *Effects) *Release {
	r := k.host.NewRelease()
	r.Batch[0] = request
	r.TTL, r.Until = ttl, now.Add(2*ttl)
	r.Withdrawal = true
	fx.releases.push(r)
	return r
}
