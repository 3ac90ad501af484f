// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

var noteCases = []testCase{
	{"the note of a holder is read as it was written", notes, noteAsWritten},
	{"a note is read with the state of its key", notes, noteWithState},
	{"only who holds a key writes its note", notes, noteOfHolder},
	{"a reader writes no note", notesAndShares, noteOfReader},
	{"an owner of permits writes no note", notesAndPermits, noteOfPermits},
	{"a note of a smaller token never replaces that of a larger one", notes, noteOfSmallerToken},
	{"a late repetition of a note changes nothing", notes, noteRepeated},
	{"a note outlives the holding and the force", notes, noteOutlives},
	{"a note ends with its TTL", notes, noteEnds},
	{"a note changes nothing of the holding", notes, noteChangesNothingElse},
	{"notes of keys of any characters stay distinct", notes, hostileNotes},
	{"a note is read with the clock of the store", notes, noteHasClock},
	{"a note that makes no sense is refused and changes nothing", notes, noteRefused},
	{"notes are not for contexts that have ended and sessions that were left", notes, noteOfNobody},
	{"a store without notes refuses them and changes nothing", noNotes, notesRefused},
}

// notes returns the part of the session that notes need.
func (c *client) notes() store.NoteSession {
	c.w.Helper()
	session, ok := c.session.(store.NoteSession)
	if !ok {
		c.w.Fatal("the session of a store with notes: got no NoteSession, want one")
	}
	return session
}

// writeNote writes a note for the holder, with the token of its grant.
func (h holding) writeNote(data string) error {
	h.c.w.Helper()
	return h.c.writeNote(h.noteRequest(data))
}

func (h holding) noteRequest(data string) store.NoteRequest {
	return store.NoteRequest{
		Key: h.req.Key, Owner: h.req.Owner, Token: h.Token, Seq: lastNote.Add(1), Data: []byte(data), TTL: long,
	}
}

var lastNote atomic.Int64 // numbers all notes of this process

func (c *client) writeNote(r store.NoteRequest) error {
	c.w.Helper()
	ctx, cancel := c.call()
	defer cancel()
	return c.notes().WriteNote(ctx, r)
}

func (c *client) readNote(key string) store.Note {
	c.w.Helper()
	ctx, cancel := c.call()
	defer cancel()
	n, err := c.notes().ReadNote(ctx, key)
	if err != nil {
		c.w.Fatalf("ReadNote: got error %v, want none", err)
	}
	return n
}

// wantNote checks the note of the case's key; token 0 is none.
func (w *world) wantNote(c *client, data string, token int64) {
	w.Helper()
	if n := c.readNote(w.key); string(n.Data) != data || n.Token != token {
		w.Errorf("ReadNote: got %q with token %d, want %q with %d", n.Data, n.Token, data, token)
	}
}

// wantWritten checks that a note was written.
func (w *world) wantWritten(what string, err error) {
	w.Helper()
	if err != nil {
		w.Errorf("WriteNote of %s: got %v, want no error", what, err)
	}
}

func noteAsWritten(w *world) {
	a, b := w.join(), w.join()
	w.wantNote(b, "", 0)
	h := a.hold(w.request())
	w.wantNote(b, "", 0)
	all := make([]byte, store.MaxNoteLen)
	for i := range all {
		all[i] = byte(i)
	}
	for _, data := range []string{"first", "", "\x00", " 12 \n", string(all)} {
		w.wantWritten("the holder", h.writeNote(data))
		w.wantNote(b, data, h.Token)
	}
}

// noteRepeated sends a request again, and once more after the next one.
func noteRepeated(w *world) {
	a, b := w.join(), w.join()
	h := a.hold(w.request())
	first, second := h.noteRequest("first"), h.noteRequest("second")
	w.wantWritten("the holder", a.writeNote(first))
	w.wantWritten("a repetition", a.writeNote(first))
	w.wantWritten("the next one", a.writeNote(second))
	if err := a.writeNote(first); !errors.Is(err, store.ErrStolen) {
		w.Errorf("WriteNote, repeated after the next one: got %v, want ErrStolen", err)
	}
	w.wantNote(b, "second", h.Token)
	w.wantWritten("a repetition of the next one", a.writeNote(second))
	h.release()
	next := b.hold(w.request()).noteRequest("of the next holder")
	next.Seq = 1 // numbers are those of a lease
	w.wantWritten("the next holder", b.writeNote(next))
	w.wantNote(a, "of the next holder", next.Token)
}

func noteWithState(w *world) {
	a, b := w.join(), w.join()
	if n := b.readNote(w.key); n.Held || n.Holder != "" || n.HolderToken != 0 {
		w.Errorf("ReadNote of a free key: got %+v, want it free", n)
	}
	h := a.hold(w.request())
	w.wantWritten("the holder", h.writeNote("first"))
	n := b.readNote(w.key)
	if !n.Held || n.Holder != h.req.Description || n.HolderToken != h.Token {
		w.Errorf("ReadNote of a held key: got %+v, want it held by %q with token %d", n, h.req.Description, h.Token)
	}
	w.wantRemains("Remaining", n.Remaining, medium, long)
	h.release()
	if n := b.readNote(w.key); n.Held || n.Holder != "" {
		w.Errorf("ReadNote of a key that was released: got %+v, want it free", n)
	}
	next := b.hold(w.request())
	n = a.readNote(w.key)
	if n.HolderToken != next.Token || n.Token != h.Token || n.Holder != next.req.Description {
		w.Errorf("ReadNote under the next holder: got %+v, want token %d of that, and the note of %d", n, next.Token, h.Token)
	}
}

// noteOfHolder has others write, before, while and after somebody holds the key.
func noteOfHolder(w *world) {
	a, b := w.join(), w.join()
	other := holding{c: b, req: w.request()}
	other.Token = 1 << 40
	w.wantNoNote("of a free key", other, store.ErrExpired)
	h := a.hold(w.request())
	w.wantWritten("the holder", h.writeNote("mine"))
	w.wantNoNote("of another's key", other, store.ErrStolen)
	if w.store.Features().FIFO {
		q := b.wait(w.request())
		w.wantNoNote("of a waiter", holding{c: b, req: q.req, Grant: other.Grant}, store.ErrStolen)
		b.release(store.ReleaseRequest{Key: w.key, Owner: q.req.Owner})
	}
	w.wantNote(b, "mine", h.Token)
	h.release()
	w.wantNoNote("after the release", h, store.ErrExpired)
	next := b.hold(w.request())
	w.wantNoNote("after the next grant", h, store.ErrStolen)
	w.wantNote(b, "mine", h.Token)
	w.wantWritten("the next holder", next.writeNote("next"))
	w.wantNote(a, "next", next.Token)
}

// wantNoNote checks that somebody who is not the holder writes no note.
func (w *world) wantNoNote(what string, h holding, want error) {
	w.Helper()
	if err := h.writeNote("not mine"); !errors.Is(err, want) {
		w.Errorf("WriteNote %s: got %v, want %v", what, err, want)
	}
}

func noteOfReader(w *world) {
	a, b := w.join(), w.join()
	reader := a.hold(w.read())
	other := b.hold(w.read())
	for _, h := range []holding{reader, other} {
		w.wantNoNote("of a reader", h, store.ErrLost)
	}
	w.wantNote(b, "", 0)
	n := b.readNote(w.key)
	if !n.Held || n.Holder != "" || n.HolderToken != reader.Fence {
		w.Errorf("ReadNote of a key with readers: got %+v, want it held by nobody alone, with token %d", n, reader.Fence)
	}
	w.wantRemains("Remaining", n.Remaining, medium, long)
	reader.release()
	other.release()
	if n := b.readNote(w.key); n.Held {
		w.Errorf("ReadNote after the readers: got %+v, want the key free", n)
	}
	r := w.read()
	r.TTL = short
	a.hold(r)
	expired()
	if n := b.readNote(w.key); n.Held {
		w.Errorf("ReadNote after a reader that died: got %+v, want the key free", n)
	}
}

func noteOfPermits(w *world) {
	a := w.join()
	r := w.request()
	r.Share = store.Share{Mode: store.Permits, Weight: 1, Limit: 3}
	h := a.hold(r)
	w.wantNoNote("of an owner of permits", h, store.ErrLost)
	w.wantNote(a, "", 0)
	h.release()
}

func noteOfSmallerToken(w *world) {
	a, b := w.join(), w.join()
	h := a.hold(w.request())
	later, earlier := h.noteRequest("later"), h.noteRequest("earlier") // with a larger number
	later.Token++
	w.wantWritten("a later lease of the holder", a.writeNote(later))
	if err := a.writeNote(earlier); !errors.Is(err, store.ErrStolen) {
		w.Errorf("WriteNote with a smaller token: got %v, want ErrStolen", err)
	}
	w.wantNote(b, "later", later.Token)
	later.Data, later.Seq = []byte("latest"), lastNote.Add(1)
	w.wantWritten("the same lease", a.writeNote(later))
	w.wantNote(b, "latest", later.Token)
}

func noteOutlives(w *world) {
	a, b := w.join(), w.join()
	h := a.hold(w.request())
	w.wantWritten("the holder", h.writeNote("first"))
	h.release()
	w.wantNote(b, "first", h.Token)
	w.wantList(b, w.key)
	r := w.request()
	r.TTL = short
	h = a.hold(r)
	w.wantWritten("a holder that dies", h.writeNote("second"))
	expired()
	w.wantNote(b, "second", h.Token)
	w.wantFree(b, w.key)
	forced := b.hold(w.request())
	if !a.force(w.key) {
		w.Error("Force of a held key: got false, want true")
	}
	w.wantNote(a, "second", h.Token)
	w.wantNoNote("after the force", forced, store.ErrExpired)
}

func noteEnds(w *world) {
	a, b := w.join(), w.join()
	h := a.hold(w.request())
	r := h.noteRequest("short")
	r.TTL = short
	w.wantWritten("a TTL of short", a.writeNote(r))
	expired()
	w.wantNote(b, "", 0)
	w.wantHeldBy(b, h.req)
	w.wantWritten("a TTL of short", a.writeNote(r))
	w.wantWritten("a longer TTL", h.writeNote("long"))
	expired()
	w.wantNote(b, "long", h.Token)
	longest := h.noteRequest("longest")
	longest.TTL = store.MaxNoteTTL
	w.wantWritten("the longest TTL", a.writeNote(longest))
	w.wantNote(b, "longest", h.Token)
}

// noteChangesNothingElse writes a note with a later token. It must not be written back to the holding,
// and the TTL of the note must not become that of the key.
func noteChangesNothingElse(w *world) {
	a, b := w.join(), w.join()
	r := w.request()
	r.TTL = medium
	h := a.hold(r)
	before := b.inspect(w.key)
	note := h.noteRequest("note")
	note.Token++
	w.wantWritten("the holder", a.writeNote(note))
	after := b.inspect(w.key)
	if !after.Held || after.Token != before.Token || after.Holder != before.Holder || after.Remaining > medium {
		w.Errorf("Inspect after WriteNote: got %+v, want %+v as before", after, before)
	}
	h.release()
	w.wantFree(b, w.key)
	if next := b.hold(w.request()); next.Token <= h.Token {
		w.Errorf("token after the release: got %d, want more than %d", next.Token, h.Token)
	}
}

func hostileNotes(w *world) {
	a, b := w.join(), w.join()
	names := w.hostileNames()
	held := make([]holding, len(names))
	for i, key := range names {
		r := w.request()
		r.Key = key
		held[i] = a.hold(r)
		w.wantWritten("a key of any characters", held[i].writeNote(key))
	}
	for i, key := range names {
		if n := b.readNote(key); string(n.Data) != key || n.Token != held[i].Token {
			w.Errorf("ReadNote(%q): got %q with token %d, want its name with %d", key, n.Data, n.Token, held[i].Token)
		}
		held[i].release()
	}
}

// noteHasClock measures a time by the store's clock, and compares it with ours.
func noteHasClock(w *world) {
	a, b := w.join(), w.join()
	start := time.Now()
	first := a.readNote(w.key).Time
	between := time.Now()
	expired()
	paused := time.Since(between)
	second := b.readNote(w.key).Time
	if got, most := second.Sub(first), time.Since(start)+slack; got < paused-slack || got > most {
		w.Errorf("time between two readings by the store's clock: got %v, want %v to %v", got, paused, most)
	}
	if first.UTC().Year() < 2000 {
		w.Errorf("the store's clock: got %v, want the time of day", first)
	}
}

func noteRefused(w *world) {
	a, b := w.join(), w.join()
	h := a.hold(w.request())
	w.wantWritten("the holder", h.writeNote("first"))
	for what, change := range map[string]func(*store.NoteRequest){
		"too long":    func(r *store.NoteRequest) { r.Data = bytes.Repeat([]byte("x"), store.MaxNoteLen+1) },
		"no TTL":      func(r *store.NoteRequest) { r.TTL = 0 },
		"a short TTL": func(r *store.NoteRequest) { r.TTL = store.MinTTL - 1 },
		"a long TTL":  func(r *store.NoteRequest) { r.TTL = store.MaxNoteTTL + 1 },
		"no token":    func(r *store.NoteRequest) { r.Token = 0 },
		"no number":   func(r *store.NoteRequest) { r.Seq = 0 },
	} {
		r := h.noteRequest(strings.ToUpper(what))
		change(&r)
		if err := a.writeNote(r); !errors.Is(err, store.ErrInvalidOption) {
			w.Errorf("WriteNote, %s: got %v, want ErrInvalidOption", what, err)
		}
	}
	w.wantNote(b, "first", h.Token)
}

func noteOfNobody(w *world) {
	a, b := w.join(), w.join()
	h := a.hold(w.request())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w.wantNoteErrors(ctx, h, "with a context that was cancelled", context.Canceled)
	ctx, cancel = a.call()
	defer cancel()
	if err := a.session.Close(ctx); err != nil {
		w.Errorf("Close: got %v, want no error", err)
	}
	w.wantNoteErrors(ctx, h, "after Close", store.ErrClosed)
	w.wantNote(b, "", 0)
}

func (w *world) wantNoteErrors(ctx context.Context, h holding, when string, want error) {
	w.Helper()
	if err := h.c.notes().WriteNote(ctx, h.noteRequest("none")); !errors.Is(err, want) {
		w.Errorf("WriteNote %s: got %v, want %v", when, err, want)
	}
	if _, err := h.c.notes().ReadNote(ctx, w.key); !errors.Is(err, want) {
		w.Errorf("ReadNote %s: got %v, want %v", when, err, want)
	}
}

// notesRefused is for a session that has the methods, as a wrapper of other sessions has. Most
// sessions without notes have none.
func notesRefused(w *world) {
	a := w.join()
	h := a.hold(w.request())
	if session, ok := a.session.(store.NoteSession); ok {
		ctx, cancel := a.call()
		defer cancel()
		if err := session.WriteNote(ctx, h.noteRequest("none")); !errors.Is(err, store.ErrUnsupported) {
			w.Errorf("WriteNote: got %v, want ErrUnsupported", err)
		}
		if n, err := session.ReadNote(ctx, w.key); !errors.Is(err, store.ErrUnsupported) {
			w.Errorf("ReadNote: got %+v, %v; want ErrUnsupported", n, err)
		}
	}
	w.wantHeldBy(a, h.req)
	h.release()
}
