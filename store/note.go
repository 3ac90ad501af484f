// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"time"
)

// A NoteSession is a [Session] of a store with Features.Notes. A note is a few bytes beside a key. It
// outlives the holding of its writer, for a TTL of its own. Force leaves it. List does not find a key that has
// a note and nothing else.
type NoteSession interface {
	Session

	// WriteNote replaces the note of a key. Only an Exclusive owner that holds the key writes one.
	// The error is [ErrExpired] or [ErrStolen], as for Renew, for any other owner. It is also
	// ErrStolen if the note there is a later one: its Token is larger, or that is equal and its Seq
	// is larger. So a request can be repeated, and a late repetition changes nothing. After an error
	// nothing has changed, unless the outcome is unknown. A note changes nothing of the holding.
	WriteNote(ctx context.Context, r NoteRequest) error

	// ReadNote returns the note of a key, and how the key stands at the same moment. It changes
	// nothing.
	ReadNote(ctx context.Context, key string) (Note, error)
}

// A NoteRequest writes one note. Only what [NoteRequest.Check] accepts is ever sent.
type NoteRequest struct {
	Key   string
	Owner string
	Token int64         // of the lease that writes; from 1
	Seq   int64         // from 1; larger for each further note of the lease
	Data  []byte        // at most [MaxNoteLen] bytes, of any values
	TTL   time.Duration // of the note; at most [MaxNoteTTL]
	// Announce tells observers of the key in the same step; see [ObserveSession]. A store without
	// Features.Announcements ignores it.
	Announce bool
}

// Check returns an error for a request that makes no sense.
func (r *NoteRequest) Check() error {
	switch {
	case len(r.Data) > MaxNoteLen:
		return fmt.Errorf("%w: a note of %d bytes, at most %d are allowed", ErrInvalidOption, len(r.Data), MaxNoteLen)
	case r.TTL < MinTTL || r.TTL > MaxNoteTTL:
		return fmt.Errorf("%w: a note's TTL of %v is outside %v to %v", ErrInvalidOption, r.TTL, MinTTL, MaxNoteTTL)
	case r.Token < 1 || r.Seq < 1:
		return fmt.Errorf("%w: a note with token %d and number %d", ErrInvalidOption, r.Token, r.Seq)
	}
	return nil
}

// A Note is what [NoteSession.ReadNote] finds beside a key. Without a note its Token is 0 and its Data
// empty.
type Note struct {
	Data  []byte
	Token int64 // of the lease that wrote it
	Seq   int64 // of the request that wrote it; 0 in a store without Features.Announcements

	Time time.Time // the store's clock at the reading

	// How the key stood then, as Inspect shows it. If Token is larger than HolderToken, the holder's
	// client has passed the key on to the writer of the note, and has not told the store otherwise.
	Held        bool
	Holder      string // the description of an Exclusive holder; empty if others share the key
	HolderToken int64
	Remaining   time.Duration // of the holder's TTL
}
