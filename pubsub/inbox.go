// SPDX-License-Identifier: Apache-2.0

package pubsub

import (
	"context"
	"sync"
	"time"
)

// An Inbox keeps one subscription. Its methods may be called at any time from
// any goroutine, with the one exception that [Inbox.Close] documents.
type Inbox struct {
	source     Source
	opened     time.Time
	queue      queue
	settled    chan struct{} // closed on leaving the state unsettled
	cancel     context.CancelFunc
	goroutines sync.WaitGroup

	mu         sync.Mutex
	state      state
	current    *subscription // the latest; may be over
	publishing bool          // publishProbes runs
}

// state is what the inbox knows of its subscription.
type state int

const (
	unsettled state = iota // no verdict yet
	live                   // proven
	down                   // in an outage that the handler was told of
	closed                 // for ever
)

// Open starts an inbox. It returns at once; [Inbox.Settled] tells when it is
// known whether the subscription works. End it with [Inbox.Close].
func Open(source Source, handler Handler) *Inbox {
	ctx, cancel := context.WithCancel(context.Background())
	in := &Inbox{
		source:  source,
		opened:  time.Now(),
		queue:   newQueue(),
		settled: make(chan struct{}),
		cancel:  cancel,
	}
	// Both end with ctx; Close waits for them.
	in.goroutines.Go(func() { in.keepSubscribed(ctx) })
	in.goroutines.Go(func() { in.queue.dispatch(ctx, handler) })
	return in
}

// Live reports whether messages can be counted on, to the best of the inbox's
// knowledge, which may be 12 s old. After Close it is false.
func (in *Inbox) Live() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.state == live
}

// Settled returns a channel that is closed, and never sent to, once the first
// verdict is known: the inbox is live or it is down. That takes 7 s at most,
// whatever the source does. Close closes it too.
func (in *Inbox) Settled() <-chan struct{} { return in.settled }

// WaitLive waits for the first verdict, at most until atMost after [Open], and reports
// whether messages can be counted on. Of the time that ctx has left it uses a quarter at
// most, because its caller needs the rest for a request. After the first verdict it does not
// wait.
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

// Close ends the subscription and waits for the inbox's goroutines, and with
// them for running calls of the handler and the source. When it returns nil there
// are none and will be none. Messages still queued are dropped, and Down is not
// called. If ctx ends first, Close returns its error; the inbox is closed all the same.
// Calls after the first wait in the same way.
//
// The handler must not wait for Close, because each would wait for the other. It may say
// go inbox.Close(ctx).
func (in *Inbox) Close(ctx context.Context) error {
	in.mu.Lock()
	in.enterLocked(closed)
	if in.current != nil {
		in.current.stopLocked()
	}
	in.mu.Unlock()
	in.cancel()

	done := make(chan struct{})
	go func() { // ends when the inbox is closed, which takes as long as its source does
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

// keepSubscribed subscribes, again and again, until the inbox is closed. The
// end of ctx cuts everything short.
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
		case <-ctx.Done():
			wait.Stop()
		}
	}
}

// subscribe makes the next subscription the current one. Once the inbox is
// closed there is none.
func (in *Inbox) subscribe(ctx context.Context) *subscription {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.state == closed {
		return nil
	}
	in.current = newSubscription(ctx, in)
	return in.current
}

// publishProbes publishes the probe that the current subscription waits for,
// and ends when none is left to publish. It is a goroutine of its own because
// Publish may hang while timers have to be served, and there is one at most, so
// that a source whose Publish does not return is not called over and over.
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

// startPublishingLocked sees to it that the current probe gets published.
// Close waits for it.
func (in *Inbox) startPublishingLocked() {
	if !in.publishing {
		in.publishing = true
		in.goroutines.Go(in.publishProbes)
	}
}

// probeAfter returns the probe to be published after last and its
// subscription. If there is none it takes note that the publisher ends.
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
	in.enterLocked(live)
	in.queue.push(event{kind: up}, in.state)
}

func (in *Inbox) downLocked(err error) {
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
