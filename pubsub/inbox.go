// SPDX-License-Identifier: Apache-2.0

package pubsub

import (
	"context"
	"sync"
	"time"
)

// An Inbox keeps one subscription. Its methods may be called at any time from any goroutine, with
// the one exception that [Inbox.Close] documents.
type Inbox struct {
	source     Source
	opened     time.Time
	queue      queue
	settled    chan struct{} // closed on leaving the state unsettled
	hopes      chan struct{} // has an element if a pause is to end
	cancel     context.CancelFunc
	goroutines sync.WaitGroup

	mu         sync.Mutex
	state      state
	current    *subscription // the latest; may be over
	publishing bool          // publishProbes runs
	proven     time.Time     // when the present connection was; zero: it is not
	short      bool          // the last one that was proven did not last
}

// state is what the inbox knows of its subscription.
type state int

const (
	unsettled state = iota // no verdict yet
	live                   // proven
	down                   // in an outage that was reported to the handler
	closed                 // for ever
)

// Open starts an inbox. It returns at once; the channel of [Inbox.Settled] is closed when the inbox
// knows whether the subscription works. End the inbox with [Inbox.Close].
func Open(source Source, handler Handler) *Inbox {
	ctx, cancel := context.WithCancel(context.Background())
	in := &Inbox{
		source:  source,
		opened:  time.Now(),
		queue:   newQueue(),
		settled: make(chan struct{}),
		hopes:   make(chan struct{}, 1),
		cancel:  cancel,
	}
	// Both end with ctx; Close waits for them.
	in.goroutines.Go(func() { in.keepSubscribed(ctx) })
	in.goroutines.Go(func() { in.queue.dispatch(ctx, handler) })
	return in
}

// Live reports whether the inbox can rely on messages, to the best of its knowledge, which may be
// 12 s old. If a connection did not last for two seconds, the next one counts when it has. After Close
// it returns false.
func (in *Inbox) Live() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	lasted := !in.proven.IsZero() && time.Since(in.proven) >= steadyAfter
	return in.state == live && (lasted || !in.short)
}

// Prove has a live inbox prove its subscription now, instead of up to 10 s later: call it if there is a reason for doubt. An
// inbox without a subscription subscribes now, instead of up to 30 s later: call it if the server has answered something.
// It does not wait, and does nothing if the last proof or subscription began less than 2 s ago.
func (in *Inbox) Prove() {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch s := in.current; {
	case s == nil:
	case s.over && time.Since(s.begun) >= steadyAfter:
		select {
		case in.hopes <- struct{}{}:
		default: // it was told already
		}
	case in.state == live && !s.over && s.probe == "" && time.Since(s.proving) >= steadyAfter:
		s.proveLocked()
	}
}

// Settled returns a channel that is closed, and never sent to, when the first verdict is known: the
// inbox is live or it is down. This takes 7 s at most, whatever the source does. Close also closes
// the channel.
func (in *Inbox) Settled() <-chan struct{} { return in.settled }

// WaitLive waits for the first verdict, at most until atMost after [Open], and reports whether the
// inbox can rely on messages. It uses at most a quarter of the time that ctx has left, because the
// caller needs the rest for a request. After the first verdict it does not wait.
func (in *Inbox) WaitLive(ctx context.Context, atMost time.Duration) bool {
	wait := time.Until(in.opened.Add(atMost))
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)/4)
	}
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-in.settled:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return in.Live()
}

// Close ends the subscription and waits for the inbox's goroutines, and so for running calls of the
// handler and the source. After it has returned nil, no such call runs or will ever run. Queued
// messages are dropped, and Down is not called. If ctx ends first, Close returns its error; the
// inbox is closed all the same. Later calls wait in the same way.
//
// The handler must not wait for Close, because each would wait for the other. It may call go
// inbox.Close(ctx).
func (in *Inbox) Close(ctx context.Context) error {
	in.mu.Lock()
	in.enterLocked(closed)
	if in.current != nil {
		in.current.stopLocked()
	}
	in.mu.Unlock()
	in.cancel()

	done := make(chan struct{})
	go func() { // ends when the inbox is closed, which takes as long as its source takes
		in.goroutines.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// keepSubscribed subscribes again and again until the inbox is closed. It stops at once when ctx
// ends.
func (in *Inbox) keepSubscribed(ctx context.Context) {
	var pause backoff
	for {
		s := in.subscribe(ctx)
		if s == nil {
			return
		}
		if steady := s.ended(s.receive()); steady {
			pause.reset()
		}
		wait := time.NewTimer(pause.next())
		select {
		case <-wait.C:
		case <-in.hopes:
			wait.Stop()
		case <-ctx.Done():
			wait.Stop()
		}
	}
}

// subscribe makes a new subscription the current one. It returns none if the inbox is closed.
func (in *Inbox) subscribe(ctx context.Context) *subscription {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.state == closed {
		return nil
	}
	in.current = newSubscription(ctx, in)
	return in.current
}

// publishProbes publishes the probe that the current subscription waits for, and ends when no probe
// is left to publish. It has its own goroutine because Publish may hang while timers have to be
// served. There is at most one such goroutine, so that a source whose Publish does not return is
// not called over and over.
func (in *Inbox) publishProbes() {
	var last string
	for {
		s, probe := in.probeAfter(last)
		if s == nil {
			return
		}
		if err := s.publish(probe); err != nil {
			s.notPublished(probe, err)
		}
		last = probe
	}
}

// startPublishingLocked makes sure that the current probe gets published. Close waits for it.
func (in *Inbox) startPublishingLocked() {
	if !in.publishing {
		in.publishing = true
		in.goroutines.Go(in.publishProbes)
	}
}

// probeAfter returns the probe to be published after last, and its subscription. If there is none,
// it records that the publisher ends.
func (in *Inbox) probeAfter(last string) (*subscription, string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	s := in.current
	if s.over || s.probe == "" || s.probe == last {
		in.publishing = false
		return nil, ""
	}
	return s, s.probe
}

func (in *Inbox) messageLocked(payload string) {
	in.queue.push(event{kind: message, payload: payload}, in.state)
}

func (in *Inbox) upLocked() {
	in.proven = time.Now()
	in.enterLocked(live)
	in.queue.push(event{kind: up}, in.state)
}

// brokenLocked notes that the connection has been replaced or has ended. One that did not last makes the next one count
// only when it has lasted itself. Otherwise messages would go to connections that are broken by then, again and again.
func (in *Inbox) brokenLocked() {
	if !in.proven.IsZero() {
		in.short = time.Since(in.proven) < steadyAfter
	}
	in.proven = time.Time{}
}

func (in *Inbox) downLocked(err error) {
	in.brokenLocked()
	if in.state != down {
		in.enterLocked(down)
		in.queue.push(event{kind: wentDown, err: err}, in.state)
	}
}

func (in *Inbox) enterLocked(next state) {
	if in.state == unsettled {
		close(in.settled)
	}
	in.state = next
}
