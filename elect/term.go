// SPDX-License-Identifier: Apache-2.0

package elect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// A Term is one leadership: a lease of the key, with a value that observers see. The lease's token is the
// number of the term. It is larger than that of every term before.
type Term struct {
	*asynclock.Lease

	turn     chan struct{} // has an element while the note is written, so that a repetition never undoes a Proclaim
	value    []byte        // is changed by who has the turn
	keeping  context.CancelFunc
	kept     chan struct{} // closed when nobody keeps the note any more
	noteless bool          // the store has no notes
	stats    *Stats
}

// The note of a leader is written anew every keepEvery. A store that has lost it shows it again after that
// time at the latest. It stays for noteTTL, also when nobody leads.
const (
	keepEvery = time.Minute
	noteTTL   = 24 * time.Hour
)

// beginTerm writes the note of a term, which begins with that.
func beginTerm(ctx context.Context, lease *asynclock.Lease, value []byte, stats *Stats) (*Term, error) {
	t := &Term{Lease: lease, turn: make(chan struct{}, 1), kept: make(chan struct{}), stats: stats}
	err := t.Proclaim(ctx, value)
	if len(value) == 0 && errors.Is(err, asynclock.ErrUnsupported) {
		t.noteless, err = true, nil
	}
	if err != nil {
		return nil, err
	}
	keeping, cancel := context.WithCancel(lease.Context())
	t.keeping = cancel
	stats.begun(t)
	go t.keep(keeping) // ends with the lease, or with end, which waits for it
	return t, nil
}

// Proclaim changes the value of the term, which observers see from then on. At most
// [asynclock.MaxNoteLen] bytes. The errors are those of [asynclock.Lease.Announce]. After the end of the
// term nothing is changed, and the error is that of the lease.
func (t *Term) Proclaim(ctx context.Context, value []byte) error {
	switch {
	case t.isNone():
		return errNoTerm
	case ctx == nil:
		return t.Announce(ctx, value, noteTTL) // which says what is wrong
	}
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return failed(t.Key(), context.Cause(ctx))
	}
	if err := t.Announce(ctx, value, noteTTL); err != nil {
		return err
	}
	t.value = append([]byte(nil), value...)
	return nil
}

// keep writes the note again and again.
func (t *Term) keep(ctx context.Context) {
	defer close(t.kept)
	defer t.stats.ended(t) // whoever ends the term waits for this
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		select {
		case <-ctx.Done():
			return
		case t.turn <- struct{}{}:
			if !t.noteless {
				_ = t.Announce(ctx, t.value, noteTTL) // its turn comes again
			}
			<-t.turn
		}
	}
}

// Resign ends the term and gives the leadership to the next candidate. It is Unlock, and has its errors.
// Repetitions do nothing.
func (t *Term) Resign(ctx context.Context) error {
	if t.isNone() {
		return errNoTerm
	}
	t.end()
	return t.Unlock(ctx)
}

var errNoTerm = fmt.Errorf("%w: the term is of no campaign", asynclock.ErrInvalidOption)

// isNone reports whether t is nil or the zero Term.
func (t *Term) isNone() bool { return t == nil || t.turn == nil }

// end waits until nobody keeps the note.
func (t *Term) end() {
	t.keeping()
	<-t.kept
}
