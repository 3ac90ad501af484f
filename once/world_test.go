// SPDX-License-Identifier: Apache-2.0

package once_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/once"
	"github.com/asynclock/asynclock-go/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	key   = "job"
	every = time.Minute
	early = every / 10 // by which a call may be early
)

// A world is a store behind a bad network, whose clock can be set.
type world struct {
	*testing.T
	store *asynclocktest.Store

	ahead  atomic.Int64 // of the store's clock, as a Duration
	forgot atomic.Bool  // the store has lost all notes
}

// story tells a story in a bubble, where time costs nothing. It begins with an interval.
func story(t *testing.T, tell func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tell(&world{T: t, store: asynclocktest.New()})
	})
}

func (w *world) client(options ...asynclock.ClientOption) *asynclock.Client {
	w.Helper()
	return w.clientOf(clocked{w.store, w}, options...)
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

// A clocked store has the world's clock.
type clocked struct {
	*asynclocktest.Store

	w *world
}

func (s clocked) Open(id string, notify func(store.Event)) (store.Session, error) {
	inner, err := s.Store.Open(id, notify)
	if err != nil {
		return nil, err
	}
	return clockedSession{inner, inner.(store.NoteSession), s.w}, nil
}

type clockedSession struct {
	store.Session

	notes store.NoteSession
	w     *world
}

func (s clockedSession) WriteNote(ctx context.Context, r store.NoteRequest) error {
	return s.notes.WriteNote(ctx, r)
}

func (s clockedSession) ReadNote(ctx context.Context, key string) (store.Note, error) {
	n, err := s.notes.ReadNote(ctx, key)
	n.Time = n.Time.Add(time.Duration(s.w.ahead.Load()))
	if s.w.forgot.Load() {
		n.Data, n.Token = nil, 0
	}
	return n, err
}

// fn is a job that does nothing.
func fn(context.Context, once.Run) error { return nil }

// wantRan calls Do, which has to run the job.
func (w *world) wantRan(c *asynclock.Client, options ...once.Option) once.RunInfo {
	w.Helper()
	o, err := once.Do(w.Context(), c, key, every, fn, options...)
	if err != nil || !o.Ran || o.Running {
		w.Errorf("Do: got %+v, error %v; want it to run the job", o, err)
	}
	return o.Last
}

// wantDone calls Do, which must find the job done.
func (w *world) wantDone(c *asynclock.Client, options ...once.Option) once.RunInfo {
	w.Helper()
	o, err := once.Do(w.Context(), c, key, every, w.never, options...)
	if err != nil || o.Ran || o.Running {
		w.Errorf("Do: got %+v, error %v; want the job done before", o, err)
	}
	return o.Last
}

// wantRunning calls Do, which must find the job running.
func (w *world) wantRunning(c *asynclock.Client) {
	w.Helper()
	if o, err := once.Do(w.Context(), c, key, every, w.never); err != nil || o.Ran || !o.Running {
		w.Errorf("Do: got %+v, error %v; want another to run the job", o, err)
	}
}

// never is a job that must not run.
func (w *world) never(context.Context, once.Run) error {
	w.Helper()
	w.Error("the job ran, want that it does not")
	return nil
}

func (w *world) wantError(err error, targets ...error) {
	w.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			w.Errorf("got error %v, want %v", err, target)
		}
	}
}

// A job that goes on until it is told to end.
type longJob struct {
	w       *world
	run     once.Run
	ctx     context.Context
	end     chan error
	done    chan struct{}
	outcome once.Outcome
	err     error
}

// begin runs a job in a process of its own, and returns when it has begun.
func (w *world) begin(c *asynclock.Client, options ...once.Option) *longJob {
	w.Helper()
	return w.beginUnder(w.Context(), c, options...)
}

func (w *world) beginUnder(ctx context.Context, c *asynclock.Client, options ...once.Option) *longJob {
	w.Helper()
	j := &longJob{w: w, end: make(chan error), done: make(chan struct{})}
	began := make(chan struct{})
	go func() {
		defer close(j.done)
		j.outcome, j.err = once.Do(ctx, c, key, every, func(ctx context.Context, run once.Run) error {
			j.run, j.ctx = run, ctx
			close(began)
			return <-j.end
		}, options...)
	}()
	synctest.Wait()
	select {
	case <-began:
	default:
		w.Fatal("the job has not begun")
	}
	return j
}

// ends lets the job return, and waits for Do.
func (j *longJob) ends(err error) {
	j.end <- err
	<-j.done
}

// dies cuts the process off for good, and waits until its lease is free.
func (w *world) dies(client int) {
	w.store.Every(asynclocktest.Match(nil).From(client), asynclocktest.Hang)
	w.pass(asynclock.DefaultTTL)
}

func (w *world) wantNoError(err error) {
	w.Helper()
	if err != nil {
		w.Errorf("got error %v, want none", err)
	}
}

// noteReads counts the requests for a note so far.
func (w *world) noteReads() int { return len(w.store.Calls(asynclocktest.ReadNote.Any)) }

// pass lets time pass, and then everything happen that is due.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
