// SPDX-License-Identifier: Apache-2.0

package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// Shorter names for what faults replace.
type (
	noteRequest = store.NoteRequest
	note        = store.Note
)

// accepted answers that a note was written, if the key is held in this mode.
func accepted(mode store.Mode) func(*session, noteRequest) error {
	return func(c *session, r noteRequest) error {
		err := c.writeNote(context.Background(), r)
		if info := c.inspect(r.Key); errors.Is(err, store.ErrLost) && info.Held && info.Mode == mode {
			return nil
		}
		return err
	}
}

// written changes what is written.
func written(change func(*session, *noteRequest)) func(*session, noteRequest) error {
	return func(c *session, r noteRequest) error {
		change(c, &r)
		return c.writeNote(context.Background(), r)
	}
}

// read changes what is read.
func read(change func(*note)) func(string, note) note {
	return func(_ string, n note) note {
		change(&n)
		return n
	}
}

var noteFaults = []fault{
	{breaks: "a note ends at its first zero byte", caught: "the note of a holder is read as it was written", noted: read(func(n *note) {
		n.Data, _, _ = bytes.Cut(n.Data, []byte{0})
	})},
	{breaks: "a note is trimmed", caught: "the note of a holder is read as it was written", noted: read(func(n *note) { n.Data = bytes.TrimSpace(n.Data) })},
	{breaks: "an empty note is none", caught: "the note of a holder is read as it was written", noted: read(func(n *note) {
		if len(n.Data) == 0 {
			n.Token = 0
		}
	})},
	{breaks: "a note says that its key is free", caught: "a note is read with the state of its key", noted: read(func(n *note) { n.Held = false })},
	{breaks: "a note has its writer's token for the holder's", caught: "a note is read with the state of its key", noted: read(func(n *note) {
		if n.Held && n.Token != 0 {
			n.HolderToken = n.Token
		}
	})},
	{breaks: "whoever asks writes the note of a held key", caught: "only who holds a key writes its note", note: accepted(store.Exclusive)},
	{breaks: "a note of nobody's key is written", caught: "only who holds a key writes its note", note: func(c *session, r noteRequest) error {
		if !c.inspect(r.Key).Held {
			c.acquire(acquireRequest{Key: r.Key, Owner: r.Owner, TTL: time.Hour})
			defer c.release(releaseRequest{Key: r.Key, Owner: r.Owner})
		}
		return c.writeNote(context.Background(), r)
	}},
	{breaks: "readers write notes", caught: "a reader writes no note", note: accepted(store.Shared)},
	{breaks: "owners of permits write notes", caught: "an owner of permits writes no note", note: accepted(store.Permits)},
	{breaks: "the last note wins, whatever its token", caught: "a note of a smaller token never replaces that of a larger one", note: written(func(c *session, r *noteRequest) {
		before, _ := c.ReadNote(context.Background(), r.Key)
		r.Token = max(r.Token, before.Token)
	})},
	{breaks: "the last request of a lease wins, whatever its number", caught: "a late repetition of a note changes nothing", note: written(func(_ *session, r *noteRequest) { r.Seq = 1 })},
	{breaks: "a note can't be repeated", caught: "a late repetition of a note changes nothing", note: func(c *session, r noteRequest) error {
		before, _ := c.ReadNote(context.Background(), r.Key)
		if err := c.writeNote(context.Background(), r); err != nil || before.Token != r.Token || !bytes.Equal(before.Data, r.Data) {
			return err
		}
		return store.ErrStolen
	}},
	{breaks: "numbers of notes are the key's", caught: "a late repetition of a note changes nothing", note: func(c *session, r noteRequest) error {
		if r.Seq == 1 {
			return store.ErrStolen
		}
		return c.writeNote(context.Background(), r)
	}},
	{breaks: "a note ends with the holding", caught: "a note outlives the holding and the force", noted: read(func(n *note) {
		if !n.Held {
			n.Data, n.Token = nil, 0
		}
	})},
	{breaks: "a note stays for ever", caught: "a note ends with its TTL", note: written(func(_ *session, r *noteRequest) { r.TTL = store.MaxNoteTTL })},
	{breaks: "a note has the TTL of a holding at most", caught: "a note ends with its TTL", note: written(func(_ *session, r *noteRequest) { r.TTL = min(r.TTL, 500*time.Millisecond) })},
	{breaks: "a note writes its token back to the holding", caught: "a note changes nothing of the holding", note: func(c *session, r noteRequest) error {
		c.renew(renewRequest{Key: r.Key, Owner: r.Owner, TTL: time.Millisecond, Token: r.Token})
		return c.writeNote(context.Background(), r)
	}},
	{breaks: "a note is a renewal", caught: "a note changes nothing of the holding", note: func(c *session, r noteRequest) error {
		c.renew(renewRequest{Key: r.Key, Owner: r.Owner, TTL: r.TTL})
		return c.writeNote(context.Background(), r)
	}},
	{breaks: "notes are kept by keys in capitals", caught: "notes of keys of any characters stay distinct", noted: func(key string, n note) note {
		if string(n.Data) == key {
			n.Data = bytes.ToUpper(n.Data)
		}
		return n
	}},
	{breaks: "the clock of notes stands still", caught: "a note is read with the clock of the store", noted: read(func(n *note) { n.Time = time.Unix(1e9, 0) })},
	{breaks: "the clock of notes begins with the store", caught: "a note is read with the clock of the store", noted: read(func(n *note) { n.Time = time.Unix(0, 0).Add(time.Until(n.Time)) })},
	{breaks: "a long note is cut", caught: "a note that makes no sense is refused and changes nothing", note: written(func(_ *session, r *noteRequest) { r.Data = r.Data[:min(len(r.Data), store.MaxNoteLen)] })},
	{breaks: "a note without a TTL is written", caught: "a note that makes no sense is refused and changes nothing", note: written(func(_ *session, r *noteRequest) { r.TTL = min(max(r.TTL, time.Second), store.MaxNoteTTL) })},
	{breaks: "a note without a token is written", caught: "a note that makes no sense is refused and changes nothing", note: written(func(_ *session, r *noteRequest) { r.Token = max(r.Token, 1) })},
	{breaks: "a note does not look at the context", caught: "notes are not for contexts that have ended and sessions that were left", context: context.WithoutCancel},
	{breaks: "a session that was left writes notes", caught: "notes are not for contexts that have ended and sessions that were left", leave: func(*session) error { return nil }},
	{breaks: "a store has more notes than it says", caught: "a store without notes refuses them and changes nothing", features: func(f store.Features) store.Features {
		f.Notes = false
		return f
	}},
}
