// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
)

var _ store.NoteSession = (*session)(nil)

// The Redis keys of a lock that the scripts of notes need, in their order. Scripts of locks need none of
// the note, so a lock costs as much as without notes.
const (
	writeNoteKinds = "ln"
	readNoteKinds  = "lns"
)

// WriteNote sends one command. The note is a Redis key of its own.
func (s *session) WriteNote(ctx context.Context, r store.NoteRequest) error {
	if err := cmp.Or(s.usable(), redisconn.CheckHolding(r.Key, r.Owner, r.Token), r.Check()); err != nil {
		return err
	}
	if r.Seq > redisconn.MaxGiven {
		return fmt.Errorf("%w: a note with number %d", store.ErrInvalidOption, r.Seq)
	}
	c := call{script: writeNoteScript}
	c.lockKeys(s.store.settings.prefix, r.Key, writeNoteKinds)
	c.text(r.Owner)
	c.number(r.Token)
	c.number(r.Seq)
	c.millis(r.TTL)
	c.text(string(r.Data))
	if r.Announce {
		c.announces(s.store, r.Key)
	}
	result := s.store.runOne(ctx, &c)
	answer, ok := result.Integer()
	if !ok {
		list := newReply(result)
		list.end()
		return list.failed(s.store)
	}
	switch answer {
	case 0:
		return nil
	case replyExpired:
		return store.ErrExpired
	case replyStolen:
		return store.ErrStolen
	}
	return errReply
}

// ReadNote sends one command, to the primary.
func (s *session) ReadNote(ctx context.Context, key string) (store.Note, error) {
	if err := cmp.Or(s.usable(), redisconn.CheckKey(key)); err != nil {
		return store.Note{}, err
	}
	c := call{script: readNoteScript}
	c.lockKeys(s.store.settings.prefix, key, readNoteKinds)
	r := newReply(s.store.runOne(ctx, &c))
	n := r.note()
	if err := r.failed(s.store); err != nil {
		return store.Note{}, err
	}
	return n, nil
}

// note reads what note_read.lua answers.
func (r *reply) note() (n store.Note) {
	at := r.between(replyForeign, redisconn.MaxGiven)
	if at == replyForeign {
		r.foreign()
		return n
	}
	n.Time = time.UnixMicro(at)
	n.Held = r.between(0, 1) == 1
	n.HolderToken = r.token()
	n.Remaining = r.left()
	n.Holder = r.text()
	n.Token = r.token()
	n.Seq = r.token()
	n.Data = []byte(r.text())
	return n
}

// end reads a list that says nothing but that a key is foreign.
func (r *reply) end() {
	if r.number() == replyForeign {
		r.foreign()
	} else if r.err == nil {
		r.err = errReply
	}
}
