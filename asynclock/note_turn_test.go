// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

// A notePending is a SetNote in a goroutine of its own.
type notePending struct {
	done chan struct{}
	err  error
	at   time.Time // when it was done
}

// writeNote begins to write a note, and returns when the request is under way or waits for its turn.
func (w *world) writeNote(ctx context.Context, l *asynclock.Lease, data string) *notePending {
	p := &notePending{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = l.SetNote(ctx, []byte(data), time.Hour)
		p.at = time.Now()
	}()
	w.wait()
	return p
}

// The store carries out the first request, and its answer is lost. The second call begins before the first
// one asks again.
func TestNotesOfOneLeaseAreWrittenOneAfterTheOther(t *testing.T) {
	for name, other := range map[string]func(w *world, c *asynclock.Client, l *asynclock.Lease) *asynclock.Lease{
		"by the lease": func(_ *world, _ *asynclock.Client, l *asynclock.Lease) *asynclock.Lease { return l },
		"by a lease that joined": func(w *world, c *asynclock.Client, l *asynclock.Lease) *asynclock.Lease {
			joined, err := c.Lock(l.Context(), "key")
			if err != nil {
				w.Fatal(err)
			}
			return joined
		},
	} {
		scene(t, name, func(w *world) {
			c := w.client(asynclock.WithReentry(true))
			l := lock(w, c, "key")
			second := other(w, c, l)
			w.store.Next(asynclocktest.WriteNote.Any, asynclocktest.LoseReply, asynclocktest.Refuse)
			early := w.writeNote(w.Context(), l, "first")
			late := w.writeNote(w.Context(), second, "second")
			last := w.writeNote(w.Context(), l, "last")
			w.pass(time.Second)
			for what, p := range map[string]*notePending{"first": early, "second": late, "last": last} {
				select {
				case <-p.done:
					if p.err != nil {
						w.Errorf("SetNote of the %s: got %v, want no error", what, p.err)
					}
				default:
					w.Fatalf("SetNote of the %s still waits after a second", what)
				}
			}
			wantNote(w, c, "last", l.Token())
			wantValid(w, l)
			w.wantCalls(asynclocktest.WriteNote.Any, 5) // three of the first, one of each other
		})
	}
}

func TestANoteWaitsForItsTurnWhileItsContextLasts(t *testing.T) {
	story(t, func(w *world) {
		l := lock(w, w.client(), "key")
		w.store.Every(asynclocktest.WriteNote.Any, asynclocktest.Hang)
		first, cancel := context.WithTimeout(w.Context(), 4*time.Second)
		defer cancel()
		w.writeNote(first, l, "first")
		sent := w.calls(asynclocktest.WriteNote.Any)
		short, cancel := context.WithTimeout(w.Context(), time.Second/10)
		defer cancel()
		start := time.Now()
		p := w.writeNote(short, l, "second")
		w.pass(time.Second / 2)
		select {
		case <-p.done:
		default:
			w.Fatal("SetNote still waits for its turn, half a second later")
		}
		wantError(w, p.err, context.DeadlineExceeded)
		wantTime(w, "the end", p.at, start.Add(time.Second/10))
		if n := w.calls(asynclocktest.WriteNote.Any); n != sent || errors.Is(p.err, asynclock.ErrOutcomeUnknown) {
			w.Errorf("SetNote whose turn did not come: got %v and %d requests, want nothing sent", p.err, n-sent)
		}
	})
}

func TestANoteWaitsForItsTurnWhileItsLeaseLasts(t *testing.T) {
	story(t, func(w *world) {
		l := lock(w, w.client(), "key")
		w.store.Every(asynclocktest.WriteNote.Any, asynclocktest.Hang)
		w.writeNote(w.Context(), l, "first")
		p := w.writeNote(w.Context(), l, "second")
		unlock(w, l)
		w.wait()
		select {
		case <-p.done:
			wantError(w, p.err, asynclock.ErrUnlocked)
		default:
			w.Error("SetNote still waits for its turn after its lease has ended")
		}
		w.pass(2 * callTimeout)
	})
}
