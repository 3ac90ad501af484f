// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"cmp"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// WriteNoteItem returns the item for a request.
func (s *Session) WriteNoteItem(r *store.NoteRequest) (Item, error) {
	it, err := s.ownerItem(r.Key, r.Owner)
	it.TTL, it.Token, it.Seq, it.Note = Micros(r.TTL), r.Token, r.Seq, r.Data
	return it, cmp.Or(err, checkToken(r.Token), r.Check())
}

// ReadNoteItem returns the item for a question about the key's note.
func (s *Session) ReadNoteItem(key string) (Item, error) { return s.item(key) }

// NoteOf reads the answer to that.
func (s *Session) NoteOf(a Answer) (store.Note, error) {
	if a.Clock <= 0 || a.NoteToken < 0 {
		return store.Note{}, ErrReply
	}
	n := store.Note{Data: a.Note, Token: a.NoteToken, Time: time.UnixMicro(a.Clock), Held: a.Held}
	if a.Held {
		n.HolderToken, n.Remaining = a.Token, max(span(a.Left), 0)
	}
	if a.Held && a.Mode == store.Exclusive {
		n.Holder = s.conn.Tables.Holder(a)
	}
	return n, nil
}
