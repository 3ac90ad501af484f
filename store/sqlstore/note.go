// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

var _ store.NoteSession = (*session)(nil)

// WriteNote is one call. It locks the row of the key, as a renewal does.
func (s *session) WriteNote(ctx context.Context, r store.NoteRequest) error {
	return sqlconn.Do(ctx, s.Session, sqlconn.Routine[store.NoteRequest, error]{
		Name:   "WRITE_NOTE",
		Put:    s.WriteNoteItem,
		Read:   func(_ *store.NoteRequest, a sqlconn.Answer) (error, error) { return nil, a.Renewed() },
		Failed: func(err error) error { return err },
	}, []store.NoteRequest{r})[0]
}

// A noteReply is the note of a key, or an error.
type noteReply struct {
	note store.Note
	err  error
}

// ReadNote is one call. It locks no row.
func (s *session) ReadNote(ctx context.Context, key string) (store.Note, error) {
	reply := sqlconn.Do(ctx, s.Session, sqlconn.Routine[string, noteReply]{
		Name: "READ_NOTE",
		Put:  func(key *string) (sqlconn.Item, error) { return s.ReadNoteItem(*key) },
		Read: func(_ *string, a sqlconn.Answer) (noteReply, error) {
			n, err := s.NoteOf(a)
			return noteReply{note: n}, err
		},
		Failed: func(err error) noteReply { return noteReply{err: err} },
	}, []string{key})[0]
	return reply.note, reply.err
}
