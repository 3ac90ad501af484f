// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Times that follow from the default TTL, as docs/design.md derives them.
const (
	ttl       = asynclock.DefaultTTL
	heartbeat = ttl / 10
	grantTTL  = 3 * heartbeat
	// patience is how long a waiter puts up with a store that fails.
	patience = ttl / 3
	// callTimeout is how long a waiter's request may take.
	callTimeout = time.Second // of the first one, twice that of the next
)

// trusted is how long a lease is trusted from the sending of the request that
// set its TTL.
func trusted(ttl time.Duration) time.Duration { return ttl - ttl/100 - ttl/10 - 5*time.Millisecond }

// A world is one story's store, in memory and behind a bad network. Clients are
// numbered in the order in which they are made.
type world struct {
	*testing.T
	store  *asynclocktest.Store
	memory *memstore.Store

	clients int // made so far
}

// story tells a story in a bubble, where time costs nothing.
func story(t *testing.T, tell func(w *world)) {
	t.Helper()
	stories(t, 1, tell)
}

// stories tells a story n times, each time in a bubble and a world of its own,
// since what it is about depends on who is faster.
func stories(t *testing.T, n int, tell func(w *world)) {
	t.Helper()
	t.Parallel()
	for range n {
		synctest.Test(t, func(t *testing.T) {
			memory := memstore.New()
			tell(&world{T: t, store: asynclocktest.Wrap(memory), memory: memory})
		})
	}
}

// client makes the next client, which is closed with the story.
func (w *world) client(options ...asynclock.ClientOption) *asynclock.Client {
	w.Helper()
	w.clients++
	return w.clientOf(w.store, options...)
}

// clientOf makes a client of another store, which is closed with the story.
func (w *world) clientOf(st store.Store, options ...asynclock.ClientOption) *asynclock.Client {
	w.Helper()
	c, err := asynclock.New(st, append([]asynclock.ClientOption{asynclock.WithoutLogger(), asynclock.WithLeakDetection(false)}, options...)...)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { abandon(c) })
	return c
}

// abandon closes a client without waiting for its leases.
func abandon(c *asynclock.Client) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = c.Close(ctx) // says that leases were held, as may be
}

// session joins the store behind the bad network, as a client of which no story
// is told.
func (w *world) session() store.Session {
	w.Helper()
	s, err := w.memory.Open("stranger", func(store.Event) {})
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// inspect returns what the store has of key.
func (w *world) inspect(key string) asynclock.Info {
	w.Helper()
	info, err := w.session().Inspect(w.Context(), key)
	if err != nil {
		w.Fatal(err)
	}
	return info
}

// wantUnused fails the story if the store has anything left.
func (w *world) wantUnused() {
	w.Helper()
	for info, err := range w.session().List(w.Context(), "") {
		w.Errorf("the store still has %+v (error %v), want nothing", info, err)
	}
}

// calls counts the requests so far that match.
func (w *world) calls(m asynclocktest.Match) int { return len(w.store.Calls(m)) }

// wantCalls fails the story unless so many requests so far match.
func (w *world) wantCalls(m asynclocktest.Match, want int) {
	w.Helper()
	if got := w.calls(m); got != want {
		w.Errorf("requests: got %d, want %d", got, want)
	}
}

// wait lets everything happen that can without time passing.
func (w *world) wait() { synctest.Wait() }

// pass lets time pass, and then everything happen that is due.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// lock takes a key that can be had.
func lock(tb testing.TB, c *asynclock.Client, key string, options ...asynclock.LockOption) *asynclock.Lease {
	tb.Helper()
	l, err := c.Lock(context.Background(), key, options...)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// claim takes the next lease of a channel, which can be had.
func claim(tb testing.TB, results <-chan asynclock.Result) *asynclock.Lease {
	tb.Helper()
	l, err := (<-results).Lease()
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// unlock ends a lease that has not ended.
func unlock(tb testing.TB, l *asynclock.Lease) {
	tb.Helper()
	if err := l.Unlock(context.Background()); err != nil {
		tb.Fatal(err)
	}
}

// A pending acquisition is a Lock in a goroutine of its own.
type pending struct {
	w     *world
	done  chan struct{}
	lease *asynclock.Lease
	err   error
	at    time.Time // when it was done
}

// ask begins to wait for a key, and returns when it waits.
func (w *world) ask(ctx context.Context, c *asynclock.Client, key string, options ...asynclock.LockOption) *pending {
	return w.askBy(ctx, c.Lock, key, options...)
}

// askBy is ask by another call.
func (w *world) askBy(ctx context.Context, call acquire, key string, options ...asynclock.LockOption) *pending {
	p := &pending{w: w, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.lease, p.err = call(ctx, key, options...)
		p.at = time.Now()
	}()
	w.wait()
	return p
}

// An acquire is a call that takes a key, as Lock does.
type acquire func(ctx context.Context, key string, options ...asynclock.LockOption) (*asynclock.Lease, error)

// waits fails the story if the acquisition is over.
func (p *pending) waits() {
	p.w.Helper()
	p.w.wait()
	select {
	case <-p.done:
		p.w.Fatalf("the waiter has lease %v, error %v; want it to wait", p.lease, p.err)
	default:
	}
}

// has returns the lease, which the waiter must have by now.
func (p *pending) has() *asynclock.Lease {
	p.w.Helper()
	if err := p.ended(); err != nil {
		p.w.Fatal(err)
	}
	return p.lease
}

// ended returns the error of an acquisition that must be over by now.
func (p *pending) ended() error {
	p.w.Helper()
	p.w.wait()
	select {
	case <-p.done:
		return p.err
	default:
		p.w.Fatal("the waiter still waits")
		return nil
	}
}

// get returns the lease when the waiter has it.
func (p *pending) get() *asynclock.Lease {
	p.w.Helper()
	<-p.done
	return p.has()
}

// wantError fails the test unless err is each of targets.
func wantError(tb testing.TB, err error, targets ...error) {
	tb.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			tb.Errorf("got error %v, want %v", err, target)
		}
	}
}

// wantValid fails the test unless the lease lasts.
func wantValid(tb testing.TB, l *asynclock.Lease) {
	tb.Helper()
	if err := l.Err(); err != nil || !l.Valid(0) {
		tb.Errorf("the lease of %q: got valid %v, error %v; want it to last", l.Key(), l.Valid(0), err)
	}
}

// wantTime fails the test unless got is want, which in a bubble is exact.
func wantTime(tb testing.TB, what string, got, want time.Time) {
	tb.Helper()
	if !got.Equal(want) {
		tb.Errorf("%s: got %v, want %v", what, since(got), since(want))
	}
}

// since is how long ago t was, or how far away with a minus, rounded for people.
func since(t time.Time) time.Duration { return -time.Until(t).Round(time.Microsecond) }

// wantOp fails the test unless err says what was done to which key.
func wantOp(tb testing.TB, err error, op, key string) {
	tb.Helper()
	var e *asynclock.Error
	if !errors.As(err, &e) || e.Op != op || e.Key != key {
		tb.Errorf("got error %#v, want an *Error of %q on %q", err, op, key)
	}
}

// hasNow returns the lease, if the waiter has it by now.
func (p *pending) hasNow() (*asynclock.Lease, bool) {
	p.w.Helper()
	p.w.wait()
	select {
	case <-p.done:
		return p.lease, p.err == nil
	default:
		return nil, false
	}
}
