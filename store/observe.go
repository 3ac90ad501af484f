// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"time"
)

// An ObserveSession is a [NoteSession] of a store with Features.Announcements. Such a store tells sessions that
// observe a key of its announcements: of each note that was written with NoteRequest.Announce, and of each
// AnnounceEnd. The writer is told, too, if it observes the key.
//
// Announcements are events, and so they are hints: they may be lost, delayed, repeated or reordered. An
// observer looks from time to time (ReadNote).
type ObserveSession interface {
	NoteSession

	// Observe begins (on) or ends to send this session events about announcements of the key. It does not wait.
	// [EventObserving] tells when announcements come through, and may come before Observe has returned. The client
	// calls it in turns for a key, beginning with on. A few events may still come after the end.
	//
	// The errors are [ErrClosed], and that of a key that makes no sense.
	Observe(key string, on bool) error

	// AnnounceEnd tells observers of the key that the lease with this token has ended. It changes nothing in the
	// store, and does not look whether that is so. The error is that of one request of [Session]. A client
	// need not repeat it.
	AnnounceEnd(ctx context.Context, key string, token int64) error
}

// An Announcement is what a lease has said about itself. It proves nothing, and is as old as its message.
//
// Token and Seq order the announcements of a key. An end comes after all else with its token.
type Announcement struct {
	Token int64 // of the lease, from 1
	Ended bool  // the lease has ended; all below is empty then

	Seq       int64         // of the note, among those of the lease; from 1
	Data      []byte        // the note, which nobody may change
	Holder    string        // the description of the holder
	Remaining time.Duration // of the holder's TTL, at the moment when the note was written
}
