// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// A line is the only connection to a single server. Callers use it themselves, and none of them
// waits in rueidis longer than its context lasts. For that
//
//   - each call has a place in the connection's ring, which has more places than we give away. A
//     call that was abandoned at the end of its context keeps its place until the server has
//     answered a later command: the answers come in the order of the commands.
//   - only a probe dials. A caller that finds the connection closed starts a probe, and waits for
//     its end or for the end of its own context. A caller that enters rueidis just when the
//     connection breaks would dial itself, or wait for the dial of another caller. So no dial
//     begins while a caller is inside, and no caller enters while one is under way.
type line struct {
	client rueidis.Client
	place  chan struct{} // has an element for each place that is taken

	open   atomic.Bool  // callers may enter: no dial is under way
	inside atomic.Int64 // callers in rueidis

	mu        sync.Mutex
	abandoned int    // places of calls that nobody waits for any more
	probe     *probe // the one under way, or nil
}

// A probe is a PING that dials if need be. Once it has ended, whatever was sent before it has been
// answered, or its connection is closed.
type probe struct {
	done chan struct{}
	err  error // valid when done is closed
}

func newLine(places int) *line {
	return &line{place: make(chan struct{}, places)}
}

// errCallersInside is the error of a dial that is not made, because callers would wait for it.
var errCallersInside = errors.New("redisconn: no dial while callers are inside")

// unsent is the error of a call that was not made, because there was no connection.
type unsent struct{ cause error }

func (e *unsent) Error() string { return "no connection: " + e.cause.Error() }

// Unwrap returns the cause.
func (e *unsent) Unwrap() error { return e.cause }

// dialer is option.DialCtxFn for the line's client. It dials with dial.
func (l *line) dialer(dial dialFunc) dialFunc {
	return func(ctx context.Context, address string, dialer *net.Dialer, encryption *tls.Config) (net.Conn, error) {
		l.open.Store(false)
		// A caller counts itself before it looks whether the line is open. So either this sees the
		// caller, or the caller sees that the line is closed.
		if l.inside.Load() > 0 {
			return nil, errCallersInside
		}
		return dial(ctx, address, dialer, encryption)
	}
}

// enter returns when a call may be made, which is to end with leave, or the reason why it can't be
// made.
func (l *line) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case l.place <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		l.inside.Add(1)
		if l.open.Load() {
			return nil
		}
		l.inside.Add(-1)
		if err := l.connect(ctx); err != nil {
			<-l.place
			return err
		}
	}
}

// empty reports whether no call is under way, and none that was abandoned may still be.
func (l *line) empty() bool { return len(l.place) == 0 }

// leave ends a call that rueidis returned with err. It reports whether the call was not made and is
// to be made again.
func (l *line) leave(ctx context.Context, err error) (again bool) {
	l.inside.Add(-1)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		l.abandon()
		return false
	}
	<-l.place
	return errors.Is(err, errCallersInside)
}

// abandon keeps the place of a call until a probe has ended that began later.
func (l *line) abandon() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.abandoned++
	l.probing()
}

// connect waits for a probe. A failure counts if the probe began after connect: otherwise it may be
// that of the connection before.
func (l *line) connect(ctx context.Context) error {
	var earlier *probe
	for {
		l.mu.Lock()
		p, begun := l.probing()
		l.mu.Unlock()
		if earlier == nil && !begun {
			earlier = p
		}
		select {
		case <-p.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if p.err == nil {
			return nil
		}
		if p != earlier {
			var without *unsent
			if errors.As(p.err, &without) {
				return p.err // there was a dial, which has failed
			}
			return &unsent{p.err}
		}
	}
}

// probing returns the probe under way. If there is none, it begins one. l.mu is held.
func (l *line) probing() (p *probe, begun bool) {
	if l.probe == nil {
		l.probe = &probe{done: make(chan struct{})}
		begun = true
		go l.run() // ends with the last probe, at the latest when the client is closed and its dial has ended
	}
	return l.probe, begun
}

// run runs probes, until none is needed.
func (l *line) run() {
	for l.runProbe() {
	}
}

// runProbe runs a probe. It reports whether it has begun another one, for calls that were abandoned
// meanwhile.
func (l *line) runProbe() (more bool) {
	l.mu.Lock()
	before := l.abandoned
	l.mu.Unlock()

	err := l.ping()
	l.open.Store(err == nil)
	for range before {
		<-l.place
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	l.abandoned -= before
	l.probe.err = err
	close(l.probe.done)
	l.probe = nil
	if more = l.abandoned > 0; more {
		l.probe = &probe{done: make(chan struct{})}
	}
	return more
}

// ping returns nil if the server answered, with whatever. rueidis does not repeat an arbitrary
// command. Close ends each connection and dial, and so the ping.
func (l *line) ping() error {
	for {
		err := l.client.Do(context.Background(), l.client.B().Arbitrary("PING").Build()).NonRedisError()
		if !errors.Is(err, errCallersInside) {
			return err
		}
		time.Sleep(time.Millisecond) // they leave, because their connection is closed
	}
}
