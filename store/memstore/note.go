// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

var _ store.NoteSession = (*session)(nil)

// A note is what is kept beside a key, also when nobody holds it.
type note struct {
	data  []byte
	token int64
	seq   int64
	until time.Time
}

func (c *session) WriteNote(ctx context.Context, r store.NoteRequest) error {
	if err := r.Check(); err != nil {
		return err
	}
	var refused error
	err := c.take(ctx, func(t *txn) { refused = t.writeNote(&r) })
	return cmp.Or(err, refused)
}

func (c *session) ReadNote(ctx context.Context, key string) (n store.Note, err error) {
	err = c.take(ctx, func(t *txn) { n = t.readNote(key) })
	return n, err
}

func (t *txn) writeNote(r *store.NoteRequest) error {
	t.sweepNotes()
	k := t.find(r.Key)
	before := t.note(r.Key)
	switch h := k.holding(r.Owner); {
	case h == nil, h.share.Mode != store.Exclusive:
		return k.lost(store.Exclusive)
	case before.token > r.Token, before.token == r.Token && before.seq > r.Seq:
		return store.ErrStolen
	}
	t.notes[r.Key] = note{data: slices.Clone(r.Data), token: r.Token, seq: r.Seq, until: t.now.Add(r.TTL)}
	if r.Announce {
		t.announce(r.Key, store.Announcement{
			Token: r.Token, Seq: r.Seq, Data: slices.Clone(r.Data), Holder: k.description(), Remaining: k.remaining(store.Share{}, t.now),
		})
	}
	return nil
}

func (t *txn) readNote(key string) store.Note {
	n, k := t.note(key), t.find(key)
	read := store.Note{
		Data: slices.Clone(n.data), Token: n.token, Seq: n.seq, Time: t.now,
		Held: k.held(), HolderToken: k.token(), Remaining: k.remaining(store.Share{}, t.now),
	}
	if k.mode() == store.Exclusive {
		read.Holder = k.description()
	}
	return read
}

// note returns the note of the key, or none if its time is over.
func (t *txn) note(key string) note {
	if n := t.notes[key]; t.now.Before(n.until) {
		return n
	}
	return note{}
}

// sweepNotes forgets notes whose time is over. It looks at a few of them, which the order of the map
// draws. Each write looks at more of them than it adds.
func (t *txn) sweepNotes() {
	left := sweepPerCall
	for key, n := range t.notes {
		if !t.now.Before(n.until) {
			delete(t.notes, key)
		}
		if left--; left == 0 {
			return
		}
	}
}
