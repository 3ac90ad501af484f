// SPDX-License-Identifier: Apache-2.0

package elect_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/elect"
	"github.com/asynclock/asynclock-go/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	key = "leader"
	ttl = asynclock.DefaultTTL
)

// A world is a store behind a bad network.
type world struct {
	*testing.T
	store *asynclocktest.Store
}

// story tells a story in a bubble, where time costs nothing.
func story(t *testing.T, tell func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tell(&world{T: t, store: asynclocktest.New()})
	})
}

func (w *world) client(options ...asynclock.ClientOption) *asynclock.Client {
	w.Helper()
	return w.clientOf(w.store, options...)
}

func (w *world) clientOf(st store.Store, options ...asynclock.ClientOption) *asynclock.Client {
	w.Helper()
	c, err := asynclock.New(st, append([]asynclock.ClientOption{asynclock.WithoutLogger()}, options...)...)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = c.Close(ctx) // a story may leave a lease
	})
	return c
}

// pass lets time pass, and then everything happen that is due.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) wantError(err error, targets ...error) {
	w.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			w.Errorf("got error %v, want %v", err, target)
		}
	}
}

// A runner is a Run in a goroutine of its own. Its function waits for what it is to return.
type runner struct {
	w      *world
	cancel context.CancelFunc
	done   chan error
	ends   chan error // what the function returns

	mu    sync.Mutex
	terms []*elect.Term
	ctx   context.Context // of the last term
}

func (w *world) run(c *asynclock.Client, options ...elect.Option) *runner {
	ctx, cancel := context.WithCancel(w.Context())
	r := &runner{w: w, cancel: cancel, done: make(chan error, 1), ends: make(chan error)}
	go func() { r.done <- elect.Run(ctx, c, key, r.lead, options...) }()
	w.Cleanup(func() {
		cancel()
		r.done <- <-r.done // its end, whatever it says
	})
	synctest.Wait()
	return r
}

func (r *runner) lead(ctx context.Context, term *elect.Term) error {
	r.mu.Lock()
	r.terms, r.ctx = append(r.terms, term), ctx
	r.mu.Unlock()
	select {
	case err := <-r.ends:
		return err
	case <-ctx.Done():
		return errors.New("told to end") // as a driver would say it
	}
}

// led returns the terms so far.
func (r *runner) led() []*elect.Term {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.terms)
}

// leads returns the present term.
func (r *runner) leads() *elect.Term {
	r.w.Helper()
	synctest.Wait()
	terms := r.led()
	if len(terms) == 0 || !terms[len(terms)-1].Valid(0) {
		r.w.Fatalf("the candidate does not lead, after %d terms", len(terms))
	}
	return terms[len(terms)-1]
}

// wantTerms checks how many terms there were.
func (r *runner) wantTerms(want int) {
	r.w.Helper()
	synctest.Wait()
	if got := len(r.led()); got != want {
		r.w.Errorf("terms: got %d, want %d", got, want)
	}
}

// over returns the error of Run, which must have ended.
func (r *runner) over() error {
	r.w.Helper()
	synctest.Wait()
	select {
	case err := <-r.done:
		r.done <- err
		return err
	default:
		r.w.Fatal("Run goes on")
		return nil
	}
}

// goesOn checks that Run has not ended.
func (r *runner) goesOn() {
	r.w.Helper()
	synctest.Wait()
	select {
	case err := <-r.done:
		r.done <- err
		r.w.Fatalf("Run has ended with %v, want it to go on", err)
	default:
	}
}

// wantLeader checks who leads, as another client sees it.
func (w *world) wantLeader(c *asynclock.Client, token int64, value string) {
	w.Helper()
	l, err := elect.Current(w.Context(), c, key)
	if err != nil || l.Token != token || string(l.Value) != value || l.Key != key {
		w.Errorf("Current: got %+v, error %v; want term %d with value %q", l, err, token, value)
	}
}
