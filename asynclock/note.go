// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/internal/failure"
	"github.com/asynclock/asynclock-go/store"
)

// Limits of notes.
const (
	// MaxNoteLen is the longest note, in bytes.
	MaxNoteLen = store.MaxNoteLen
	// MaxNoteTTL is the longest TTL of a note; the shortest is [MinTTL].
	MaxNoteTTL = store.MaxNoteTTL
)

// A Note is what a holder has written beside a key, and how the key stood when the note was read. Without
// a note its Token is 0 and its Data empty.
type Note = store.Note

var errNoNotes = fmt.Errorf("%w: notes", ErrUnsupported)

// Note reads the note of a key, with the store's clock and the holder at the same moment. It costs the
// store less than [Client.Inspect]. A note is as old as its writer: it promises nothing about now.
//
// Errors: those of [Client.Inspect], and [ErrUnsupported] in a store without notes ([store.Features]). A store
// that does not answer within a third of the client's TTL, and at most 10 s, is [ErrUnreachable].
func (c *Client) Note(ctx context.Context, key string) (Note, error) {
	n, err := c.readNote(ctx, key)
	if err != nil {
		return Note{}, &Error{"read note", key, err}
	}
	return n, nil
}

func (c *Client) readNote(ctx context.Context, key string) (Note, error) {
	if err := c.checkCall(ctx, key); err != nil {
		return Note{}, err
	}
	session, err := c.notes()
	if err != nil {
		return Note{}, err
	}
	bounded := c.limits.bound(ctx, machine.Patience(c.settings.lock.TTL), 0)
	defer bounded.leave()
	n, err := session.ReadNote(bounded, key)
	return n, ourTimeout(ctx, err)
}

// notes returns the session, if its store has notes.
func (c *Client) notes() (store.NoteSession, error) {
	session, ok := c.session.(store.NoteSession)
	if !ok || !c.features.Notes {
		return nil, errNoNotes
	}
	return session, nil
}

// SetNote writes the note of the lease's key, beside which everybody can read it ([Client.Note]). It
// replaces the note that was there. The note outlives the lease, for ttl from now, and it has the lease's
// token. Only the holder writes: after an error of SetNote, a later holder's note stays as it is.
//
// The request is repeated as long as ctx and the lease last. If both are over before an answer came, the
// note may have been written. Calls at the same time for one lease, or for leases that joined it, are sent one
// after the other, in the order in which they began. So the last one stays. A call that still waits for
// its turn when ctx ends has sent nothing.
//
// Errors:
//
//   - The lease's, if it has ended, or turns out to be lost.
//   - That of ctx, together with what was in the way.
//   - [ErrInvalidOption]: a reader's lease, more than [MaxNoteLen] bytes, or a ttl outside [MinTTL] to
//     [MaxNoteTTL].
//   - [ErrUnsupported]: the store has no notes ([store.Features]).
//   - [ErrStolen] although the lease lasts: the note there has a larger token. The store has lost data,
//     and its tokens went back.
//   - [ErrForeignData], [ErrDenied].
func (l *Lease) SetNote(ctx context.Context, data []byte, ttl time.Duration) error {
	if l.isNone() {
		return &Error{Op: "write note", Err: errNoLease}
	}
	if err := l.writeNote(ctx, data, ttl, false); err != nil {
		return &Error{"write note", l.Key(), err}
	}
	return nil
}

func (l *Lease) writeNote(ctx context.Context, data []byte, ttl time.Duration, announce bool) error {
	if ctx == nil {
		return errNilContext
	}
	c := l.state.shard.client
	session, err := c.notes()
	if err != nil {
		return err
	}
	if l.Mode() != Exclusive {
		return fmt.Errorf("%w: a reader writes no note", ErrInvalidOption)
	}
	w := noteWriter{lease: l, session: session, request: store.NoteRequest{
		Key: l.Key(), Owner: l.core.Owner, Token: l.core.Token, Seq: 1, Data: slices.Clone(data), TTL: ttl,
		Announce: announce && c.features.Announcements,
	}}
	if err := w.request.Check(); err != nil {
		return err
	}
	done, err := l.takeNoteTurn(ctx)
	if err != nil {
		return err
	}
	defer done()
	w.request.Seq = c.lastNote.Add(1)
	return w.write(ctx)
}

// takeNoteTurn waits until no other call writes a note with the lease's token, and returns what ends the turn. A
// request that is repeated while a later one is written would be refused, and nobody could tell that from a
// loss. Waiting costs a call that comes second the time of the first one's answer.
func (l *Lease) takeNoteTurn(ctx context.Context) (done func(), err error) {
	turn := l.root().noteTurn()
	done = func() { <-turn }
	select {
	case turn <- struct{}{}:
		return done, nil
	default:
	}
	select {
	case turn <- struct{}{}:
		return done, nil
	case <-ctx.Done():
		return nil, waitEnded(ctx)
	case <-l.Done():
		return nil, l.Err()
	}
}

func (l *leaseCore) noteTurn() chan struct{} {
	sh := l.state.shard
	sh.mu.Lock()
	defer sh.mu.Unlock()
	more := l.moreLocked()
	if more.notes == nil {
		more.notes = make(chan struct{}, 1)
	}
	return more.notes
}

// A noteWriter is one call of SetNote.
type noteWriter struct {
	lease     *Lease
	session   store.NoteSession
	request   store.NoteRequest
	confirmed bool // a renewal has confirmed the lease since the store refused the note
}

// write sends the request until it has an answer that counts.
func (w *noteWriter) write(ctx context.Context) error {
	if err := w.lease.Err(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return waitEnded(ctx)
	}
	if observed, ok := w.session.(store.ObserveSession); ok && w.request.Announce {
		w.lease.announcesEnd(observed)
	}
	for failures := 1; ; failures++ {
		err := w.try(ctx)
		if err == nil || !failure.Transient(err) {
			return err
		}
		if ended := w.lease.Err(); ended != nil {
			return ended
		}
		if ctx.Err() == nil {
			pauseFor(ctx, machine.RetryIn(failures, w.lease.core.Terms.TTL))
		}
		if ctx.Err() != nil {
			return failure.Join(ErrOutcomeUnknown, waitEnded(ctx))
		}
	}
}

// try sends the request once. If the store does not know the lease, a renewal decides whether that is
// lost. A store that may have forgotten the lease knows it again afterwards, and gets the request once
// more.
func (w *noteWriter) try(ctx context.Context) error {
	err := w.send(ctx)
	if !errors.Is(err, ErrLost) || w.confirmed {
		return err
	}
	left := min(max(time.Until(w.lease.Deadline()), MinTTL), MaxTTL)
	if err := w.lease.Renew(ctx, left); err != nil {
		return failure.Unreachable(err) // or the lease has ended
	}
	w.confirmed = true
	return w.send(ctx)
}

func (w *noteWriter) send(ctx context.Context) error {
	c := w.lease.state.shard.client
	bounded := c.limits.bound(ctx, machine.CallTimeout(w.lease.core.Terms.TTL), 0)
	defer bounded.leave()
	return ourTimeout(ctx, w.session.WriteNote(bounded, w.request))
}

// pauseFor waits for d, or until ctx ends.
func pauseFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
