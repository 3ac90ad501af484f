// SPDX-License-Identifier: Apache-2.0

package pubsub

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"
)

// How long an inbox believes without proof. The package comment, Live and Settled document these
// figures.
const (
	confirmWithin = 5 * time.Second  // includes dialing
	proveWithin   = 2 * time.Second  // from the first confirmation without proof
	proveEvery    = 10 * time.Second // at the latest, while live
	// A subscription that was live for less than this does not count as a success for the back-off,
	// because after each one the receivers look at everything.
	steadyAfter = 2 * time.Second
)

// A subscription is one call of Source.Receive and the proof that it works. Its goroutine is in
// Receive and can't wait for timers, so the timers fire as functions. All fields below publish are
// guarded by Inbox.mu.
type subscription struct {
	inbox   *Inbox
	cancel  context.CancelFunc       // ends receive and publish
	receive func() error             // Source.Receive, for keepSubscribed
	publish func(probe string) error // Source.Publish

	timer    *time.Timer
	deadline time.Time // when the timer is due; a call before that belongs to an earlier setting

	begun        time.Time
	acknowledged bool      // confirmed at least once
	probe        string    // the expected probe; empty: none is under way
	latest       string    // the last probe that was to be published
	proving      time.Time // since when
	owesUp       bool      // the probe under way answers an acknowledgement
	liveSince    time.Time // zero: not proven yet
	steady       bool      // set when over: it was live for long enough
	over         bool
}

func newSubscription(ctx context.Context, inbox *Inbox) *subscription {
	ctx, cancel := context.WithCancel(ctx)
	s := &subscription{inbox: inbox, cancel: cancel, begun: time.Now()}
	s.receive = func() error { return inbox.source.Receive(ctx, s.confirmed, s.deliver) }
	s.publish = func(probe string) error { return inbox.source.Publish(ctx, probe) }
	s.deadline = time.Now().Add(confirmWithin)
	s.timer = time.AfterFunc(confirmWithin, s.timeUp)
	return s
}

// confirmed is called when the server has acknowledged the subscription. Earlier proof is void,
// because this may be another connection.
func (s *subscription) confirmed() {
	s.inbox.mu.Lock()
	defer s.inbox.mu.Unlock()
	if s.over {
		return
	}
	s.inbox.brokenLocked()
	s.acknowledged = true
	s.owesUp = true
	s.proveLocked()
}

// deliver is called for each message, and recognizes the probe. Messages are passed on even if s is
// over, because a hint is valid at any time.
func (s *subscription) deliver(payload string) {
	s.inbox.mu.Lock()
	defer s.inbox.mu.Unlock()
	switch {
	case !strings.HasPrefix(payload, ProbePrefix):
		s.inbox.messageLocked(payload)
	case payload == s.probe && !s.over:
		s.provenLocked()
	}
}

// timeUp is called when the timer fires.
func (s *subscription) timeUp() {
	s.inbox.mu.Lock()
	defer s.inbox.mu.Unlock()
	switch {
	case s.over || time.Now().Before(s.deadline):
	case !s.acknowledged:
		s.failLocked(ErrNotConfirmed)
	case s.probe != "":
		s.failLocked(ErrNotDelivered)
	default:
		s.proveLocked()
	}
}

// notPublished is called when publishing has failed. It ignores a probe that was replaced meanwhile, and one that has
// arrived, except if that proves nothing: a replica delivers it sooner than the primary says that it knows no receiver.
func (s *subscription) notPublished(probe string, err error) {
	s.inbox.mu.Lock()
	defer s.inbox.mu.Unlock()
	if probe == s.probe || probe == s.latest && errors.Is(err, ErrElsewhere) {
		s.failLocked(fmt.Errorf("pubsub: publish probe: %w", err))
	}
}

// ended is called when Receive has returned. It reports whether s was live for
// long enough to count as a success.
func (s *subscription) ended(err error) (steady bool) {
	s.inbox.mu.Lock()
	defer s.inbox.mu.Unlock()
	if err == nil {
		s.failLocked(ErrEnded)
	} else {
		s.failLocked(fmt.Errorf("%w: %w", ErrEnded, err))
	}
	return s.steady
}

// proveLocked starts a new proof. If a proof is under way, its time does not start anew. Otherwise
// a source that confirms over and over would never be found out.
func (s *subscription) proveLocked() {
	if s.probe == "" {
		s.setTimerLocked(proveWithin)
	}
	s.probe = ProbePrefix + rand.Text()
	s.latest, s.proving = s.probe, time.Now()
	s.inbox.startPublishingLocked()
}

func (s *subscription) provenLocked() {
	s.probe = ""
	s.setTimerLocked(jitter(proveEvery))
	if s.liveSince.IsZero() {
		s.liveSince = time.Now()
	}
	if s.owesUp {
		s.owesUp = false
		s.inbox.upLocked()
	}
}

// failLocked ends s and reports why, unless s is already over.
func (s *subscription) failLocked(err error) {
	if s.over {
		return
	}
	s.steady = !s.liveSince.IsZero() && time.Since(s.liveSince) >= steadyAfter
	s.stopLocked()
	s.inbox.downLocked(err)
}

// stopLocked ends s without a report.
func (s *subscription) stopLocked() {
	s.over = true
	s.timer.Stop()
	s.cancel()
}

func (s *subscription) setTimerLocked(d time.Duration) {
	s.deadline = time.Now().Add(d) // before the timer's own reading, so that the timer never fires too early for it
	s.timer.Reset(d)
}
