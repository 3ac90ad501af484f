// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

// setNote writes a note that can be written.
func setNote(tb testing.TB, l *asynclock.Lease, data string) {
	tb.Helper()
	if err := l.SetNote(context.Background(), []byte(data), time.Hour); err != nil {
		tb.Errorf("SetNote of %q: got %v, want no error", data, err)
	}
}

// wantNote checks what a client reads.
func wantNote(tb testing.TB, c *asynclock.Client, data string, token int64) asynclock.Note {
	tb.Helper()
	n, err := c.Note(context.Background(), "key")
	if err != nil || string(n.Data) != data || n.Token != token {
		tb.Errorf("Note: got %q with token %d, error %v; want %q with token %d", n.Data, n.Token, err, data, token)
	}
	return n
}

func TestANoteIsReadByEverybodyAndOutlivesItsLease(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		wantNote(w, theirs, "", 0)
		l := lock(w, ours, "key", asynclock.WithDescription("the holder"))
		setNote(w, l, "first")
		w.pass(time.Second)
		n := wantNote(w, theirs, "first", l.Token())
		if !n.Held || n.Holder != "the holder" || n.HolderToken != l.Token() || n.Remaining != ttl-time.Second || !n.Time.Equal(time.Now()) {
			w.Errorf("Note: got %+v, want the holder, its token, its time and the clock", n)
		}
		unlock(w, l)
		if n := wantNote(w, theirs, "first", l.Token()); n.Held {
			w.Errorf("Note of a free key: got %+v, want it free", n)
		}
		w.pass(time.Hour)
		wantNote(w, theirs, "", 0)
	})
}

func TestALeaseThatEndedWritesNoNote(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		first := lock(w, c, "key")
		setNote(w, first, "first")
		second := w.ask(w.Context(), c, "key")
		unlock(w, first) // the key passes on inside the client, which keeps its owner id
		err := first.SetNote(w.Context(), []byte("late"), time.Hour)
		wantError(w, err, asynclock.ErrUnlocked)
		wantOp(w, err, "write note", "key")
		wantNote(w, c, "first", first.Token())
		setNote(w, second.has(), "second")
		wantNote(w, c, "second", second.has().Token())
		w.wantCalls(asynclocktest.WriteNote.Any, 2) // none of a lease that ended
	})
}

func TestANoteIsRepeatedUntilTheStoreAnswers(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		l := lock(w, c, "key")
		w.store.Next(asynclocktest.WriteNote.Any, asynclocktest.Refuse, asynclocktest.LoseReply, asynclocktest.Hang)
		setNote(w, l, "note")
		w.wantCalls(asynclocktest.WriteNote.Any, 4)
		wantNote(w, c, "note", l.Token())
	})
}

// The first request arrives after the next note was written.
func TestALateRequestChangesNoLaterNote(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		l := lock(w, c, "key")
		w.store.Next(asynclocktest.WriteNote.Any, func(ctx context.Context, carry func()) error {
			time.AfterFunc(3*time.Second, carry)
			return asynclocktest.Hang(ctx, carry)
		})
		setNote(w, l, "began")
		wantNote(w, c, "began", l.Token())
		setNote(w, l, "ended")
		w.pass(3 * time.Second)
		wantNote(w, c, "ended", l.Token())
	})
}

func TestTheCallerMayUseTheBytesOfANoteAgain(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		l := lock(w, c, "key")
		w.store.Next(asynclocktest.WriteNote.Any, func(ctx context.Context, carry func()) error {
			time.AfterFunc(3*time.Second, carry)
			return asynclocktest.Hang(ctx, carry)
		})
		ctx, cancel := context.WithTimeout(w.Context(), time.Second/2)
		defer cancel()
		data := []byte("note")
		wantError(w, l.SetNote(ctx, data, time.Hour), asynclock.ErrOutcomeUnknown)
		copy(data, "XXXX")
		w.pass(3 * time.Second)
		wantNote(w, c, "note", l.Token())
	})
}

// A server that was promoted does not know the lease before a renewal has shown it.
func TestANoteIsWrittenAfterTheStoreForgotTheLease(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		l := lock(w, c, "key")
		w.store.Next(asynclocktest.WriteNote.Any, asynclocktest.Fail(asynclock.ErrExpired))
		w.store.Next(asynclocktest.Renew.Any, asynclocktest.Refuse)
		w.store.Next(asynclocktest.WriteNote.Any, asynclocktest.Fail(asynclock.ErrExpired))
		before := l.Deadline()
		setNote(w, l, "note")
		wantNote(w, c, "note", l.Token())
		wantValid(w, l)
		wantTime(w, "the deadline", l.Deadline(), before)
		w.wantCalls(asynclocktest.Renew.Any, 2) // each refusal of the note asks for one
	})
}

func TestALostLeaseWritesNoNote(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		w.store.EveryEvent(nil, func(func()) {}) // nobody is told
		l := lock(w, ours, "key")
		if _, err := theirs.ForceUnlock(w.Context(), "key", 0); err != nil {
			w.Fatal(err)
		}
		next := lock(w, theirs, "key")
		setNote(w, next, "next")
		err := l.SetNote(w.Context(), []byte("late"), time.Hour)
		wantError(w, err, asynclock.ErrStolen)
		wantError(w, l.Err(), asynclock.ErrStolen)
		wantNote(w, ours, "next", next.Token())
	})
}

func TestANoteWithALargerTokenIsNotReplaced(t *testing.T) {
	story(t, func(w *world) {
		l := lock(w, w.client(), "key")
		w.store.Every(asynclocktest.WriteNote.Any, asynclocktest.Fail(asynclock.ErrStolen))
		wantError(w, l.SetNote(w.Context(), nil, time.Hour), asynclock.ErrStolen)
		wantValid(w, l)
		w.wantCalls(asynclocktest.WriteNote.Any, 2) // before and after the renewal
	})
}

func TestTheEndOfItsContextEndsANote(t *testing.T) {
	story(t, func(w *world) {
		l := lock(w, w.client(), "key")
		ended, cancel := context.WithCancel(w.Context())
		cancel()
		err := l.SetNote(ended, nil, time.Hour)
		if wantError(w, err, context.Canceled); w.calls(asynclocktest.WriteNote.Any) != 0 || errors.Is(err, asynclock.ErrOutcomeUnknown) {
			w.Errorf("SetNote with a context that has ended: got %v, want nothing sent", err)
		}
		w.store.Every(asynclocktest.WriteNote.Any, asynclocktest.Hang)
		short, cancel := context.WithTimeout(w.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		wantError(w, l.SetNote(short, nil, time.Hour), context.DeadlineExceeded, asynclock.ErrOutcomeUnknown)
		wantTime(w, "the end", time.Now(), start.Add(3*time.Second))
		wantValid(w, l)
	})
}

func TestTheEndOfItsLeaseEndsANote(t *testing.T) {
	story(t, func(w *world) {
		l := lock(w, w.client(), "key", asynclock.WithRenewal(false))
		w.store.Every(asynclocktest.WriteNote.Any, asynclocktest.Hang)
		start := time.Now()
		wantError(w, l.SetNote(w.Context(), nil, time.Hour), asynclock.ErrExpired)
		if took := time.Since(start); took < trusted(ttl) || took > trusted(ttl)+2*callTimeout {
			w.Errorf("SetNote took %v, want %v, and a request more at most", took, trusted(ttl))
		}
	})
}

func TestNotesThatMakeNoSense(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		l, reader := lock(w, c, "key"), rlock(w, c, "read")
		for what, err := range map[string]error{
			"too long":     l.SetNote(w.Context(), make([]byte, asynclock.MaxNoteLen+1), time.Hour),
			"a short TTL":  l.SetNote(w.Context(), nil, asynclock.MinTTL-1),
			"a long TTL":   l.SetNote(w.Context(), nil, asynclock.MaxNoteTTL+1),
			"a reader's":   reader.SetNote(w.Context(), nil, time.Hour),
			"of a nil ctx": l.SetNote(nil, nil, time.Hour), //nolint:staticcheck // that is the point
		} {
			wantError(w, err, asynclock.ErrInvalidOption)
			if w.calls(asynclocktest.WriteNote.Any) != 0 {
				w.Errorf("a note that is %s was sent", what)
			}
		}
		_, err := c.Note(w.Context(), "")
		wantError(w, err, asynclock.ErrInvalidKey)
		wantOp(w, err, "read note", "")
		wantError(w, l.SetNote(w.Context(), make([]byte, asynclock.MaxNoteLen), asynclock.MaxNoteTTL), nil)
	})
}

func TestAStoreWithoutNotes(t *testing.T) {
	story(t, func(w *world) {
		noteless := without(w.store, func(f *store.Features) { f.Notes = false })
		for _, c := range []*asynclock.Client{w.clientOf(noteless), w.clientOf(altered{Store: w.memory, bare: true})} {
			l := lock(w, c, "key")
			wantError(w, l.SetNote(w.Context(), nil, time.Hour), asynclock.ErrUnsupported)
			wantError(w, errOf(c.Note(w.Context(), "key")), asynclock.ErrUnsupported)
			unlock(w, l)
		}
		w.wantCalls(asynclocktest.WriteNote.Any, 0)
		w.wantCalls(asynclocktest.ReadNote.Any, 0)
	})
}

func TestReadingANoteIsBounded(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.store.Every(asynclocktest.ReadNote.Any, asynclocktest.Hang)
		start := time.Now()
		wantError(w, errOf(c.Note(w.Context(), "key")), asynclock.ErrUnreachable)
		wantTime(w, "the end", time.Now(), start.Add(patience))
	})
}

// A program that shuts down writes what its last holder has done.
func TestALeaseWritesItsNoteWhileTheClientCloses(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		l := lock(w, c, "key")
		closed := make(chan error, 1)
		go func() { closed <- c.Close(context.Background()) }()
		w.wait()
		setNote(w, l, "ended")
		wantError(w, errOf(c.Note(w.Context(), "key")), asynclock.ErrClosed)
		unlock(w, l)
		wantError(w, <-closed, nil)
		wantNote(w, w.client(), "ended", l.Token())
	})
}

// writeNote begins to write a note, and returns when the request is under way or waits for its turn.
func (w *world) writeNote(ctx context.Context, l *asynclock.Lease, data string) *pendingOf[struct{}] {
	return begin(w, func() (struct{}, error) { return struct{}{}, l.SetNote(ctx, []byte(data), time.Hour) })
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
			for what, p := range map[string]*pendingOf[struct{}]{"first": early, "second": late, "last": last} {
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
