// SPDX-License-Identifier: Apache-2.0

package asynclocktest

import (
	"context"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
)

var _ store.NoteSession = (*session)(nil)

// WriteNote returns [asynclock.ErrUnsupported] if the inner store has no notes.
func (c *session) WriteNote(ctx context.Context, r store.NoteRequest) error {
	inner, ok := c.inner.(store.NoteSession)
	if !ok {
		return asynclock.ErrUnsupported
	}
	_, err := single(ctx, c, Call{Op: WriteNote, Key: r.Key, Owner: r.Owner, Note: r}, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, inner.WriteNote(ctx, r)
	})
	return err
}

// ReadNote returns [asynclock.ErrUnsupported] if the inner store has no notes.
func (c *session) ReadNote(ctx context.Context, key string) (store.Note, error) {
	inner, ok := c.inner.(store.NoteSession)
	if !ok {
		return store.Note{}, asynclock.ErrUnsupported
	}
	return single(ctx, c, Call{Op: ReadNote, Key: key}, func(ctx context.Context) (store.Note, error) {
		return inner.ReadNote(ctx, key)
	})
}
