// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

var observeCases = []testCase{
	{"an announced note is told to observers as it was written", announcements, announcedAsWritten},
	{"an announced note that was refused is told to nobody", announcements, announcedRefused},
	{"the end of a lease is told to observers with its token", announcements, announcedEnd},
	{"an announcement is told to observers of its key only", announcements, announcedPerKey},
	{"an announcement is told to every observer", announcements, announcedToEach},
	{"a note without announcement is told to nobody", announcements, notAnnounced},
	{"who observes no longer is told nothing", announcements, observedNoLonger},
	{"a note is read with its number", announcements, noteWithNumber},
	{"observing is not for sessions that were left", announcements, observedByNobody},
	{"a store without announcements writes the note all the same", noAnnouncements, announcedToNobody},
}

// observes returns the part of the session that observing needs.
func (c *client) observes() store.ObserveSession {
	c.w.Helper()
	session, ok := c.session.(store.ObserveSession)
	if !ok {
		c.w.Fatal("the session of a store with announcements: got no ObserveSession, want one")
	}
	return session
}

// observe begins to observe a key, and waits until announcements come through.
func (c *client) observe(key string) {
	c.w.Helper()
	observing := func(e store.Event) bool { return e.Kind == store.EventObserving && e.Key == key }
	c.forgetThat(observing) // of an earlier time
	if err := c.observes().Observe(key, true); err != nil {
		c.w.Fatalf("Observe(%q): got %v, want no error", key, err)
	}
	c.awaitThat("EventObserving for "+key, observing)
}

// announcement waits for an announcement about a key that matches.
func (c *client) announcement(key string, matches func(*store.Announcement) bool) *store.Announcement {
	c.w.Helper()
	e := c.awaitThat("EventAnnounced for "+key, func(e store.Event) bool {
		return e.Kind == store.EventAnnounced && e.Key == key && matches(e.Announcement)
	})
	return e.Announcement
}

// announced returns whether an announcement about the key has come that matches.
func (c *client) announced(key string, matches func(*store.Announcement) bool) bool {
	_, ok := c.findThat(func(e store.Event) bool {
		return e.Kind == store.EventAnnounced && e.Key == key && matches(e.Announcement)
	})
	return ok
}

func (h holding) announce(data string) store.NoteRequest {
	h.c.w.Helper()
	r := h.noteRequest(data)
	r.Announce = true
	h.c.w.wantWritten("the holder, announced", h.c.writeNote(r))
	return r
}

func (c *client) announceEnd(key string, token int64) {
	c.w.Helper()
	ctx, cancel := c.call()
	defer cancel()
	if err := c.observes().AnnounceEnd(ctx, key, token); err != nil {
		c.w.Errorf("AnnounceEnd: got %v, want no error", err)
	}
}

func withSeq(seq int64) func(*store.Announcement) bool {
	return func(a *store.Announcement) bool { return a.Seq == seq }
}

func endOf(token int64) func(*store.Announcement) bool {
	return func(a *store.Announcement) bool { return a.Ended && a.Token == token }
}

func announcedAsWritten(w *world) {
	a, b := w.join(), w.join()
	b.observe(w.key)
	r := w.request()
	r.Description = "one that has spaces, 12 of them"
	h := a.hold(r)
	all := make([]byte, store.MaxNoteLen)
	for i := range all {
		all[i] = byte(i)
	}
	for _, data := range []string{"first", "", "\x00", " 12 \n", string(all)} {
		seq := h.announce(data).Seq
		got := b.announcement(w.key, withSeq(seq))
		if string(got.Data) != data || got.Token != h.Token || got.Holder != r.Description || got.Ended {
			w.Errorf("announced: got %+v, want %q with token %d of %q", got, data, h.Token, r.Description)
		}
		w.wantRemains("Remaining", got.Remaining, medium, long)
	}
	w.wantNote(b, string(all), h.Token)
}

func announcedRefused(w *world) {
	a, b := w.join(), w.join()
	b.observe(w.key)
	h := a.hold(w.request())
	late, other := h.noteRequest("late"), holding{c: b, req: w.request(), Grant: h.Grant}.noteRequest("other")
	h.announce("now")
	for _, refused := range []store.NoteRequest{late, other} {
		refused.Announce = true
		if err := a.writeNote(refused); !errors.Is(err, store.ErrStolen) {
			w.Errorf("WriteNote, %s: got %v, want ErrStolen", refused.Data, err)
		}
	}
	last := h.announce("last").Seq
	b.announcement(w.key, withSeq(last))
	if b.announced(w.key, func(a *store.Announcement) bool { return string(a.Data) == "other" || string(a.Data) == "late" }) {
		w.Error("a note that was refused was announced")
	}
}

func announcedEnd(w *world) {
	a, b := w.join(), w.join()
	b.observe(w.key)
	h := a.hold(w.request())
	b.announceEnd(w.key, h.Token)
	if got := b.announcement(w.key, endOf(h.Token)); got.Seq != 0 || len(got.Data) != 0 || got.Remaining != 0 {
		w.Errorf("an end: got %+v, want nothing but its token", got)
	}
	w.wantHeldBy(b, h.req) // nothing has changed
}

// announcedPerKey has keys of any characters, and some that share what a key does not have alone.
func announcedPerKey(w *world) {
	a, b := w.join(), w.join()
	names := w.hostileNames()
	names = append(names[:8], names[len(names)-3:]...) // each may take the store a subscription
	for _, key := range names[1:] {
		b.observe(key)
	}
	for i, key := range names {
		r := w.request()
		r.Key = key
		h := a.hold(r)
		h.announce(key)
		a.announceEnd(key, h.Token)
		if i > 0 {
			b.announcement(key, endOf(h.Token))
			b.announcement(key, func(a *store.Announcement) bool { return string(a.Data) == key })
		}
		h.release()
	}
	if b.announced(names[0], func(*store.Announcement) bool { return true }) {
		w.Errorf("got an announcement about %q, want none: it is not observed", names[0])
	}
	for _, key := range names[1:] {
		if b.announced(key, func(a *store.Announcement) bool { return !a.Ended && string(a.Data) != key }) {
			w.Errorf("observers of %q were told of another key", key)
		}
	}
}

func announcedToEach(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	for _, o := range []*client{a, b, c} {
		o.observe(w.key)
	}
	h := a.hold(w.request())
	seq := h.announce("to each").Seq
	for _, o := range []*client{a, b, c} {
		o.announcement(w.key, withSeq(seq))
	}
}

func notAnnounced(w *world) {
	a, b := w.join(), w.join()
	b.observe(w.key)
	h := a.hold(w.request())
	silent := h.noteRequest("silent")
	w.wantWritten("the holder", a.writeNote(silent))
	b.announcement(w.key, withSeq(h.announce("aloud").Seq))
	if b.announced(w.key, withSeq(silent.Seq)) {
		w.Error("a note without announcement was announced")
	}
}

func observedNoLonger(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	b.observe(w.key)
	c.observe(w.key)
	h := a.hold(w.request())
	b.announcement(w.key, withSeq(h.announce("first").Seq))
	if err := b.observes().Observe(w.key, false); err != nil {
		w.Errorf("Observe, off: got %v, want no error", err)
	}
	time.Sleep(pause) // an event under way may still come
	second := h.announce("second").Seq
	c.announcement(w.key, withSeq(second))
	if b.announced(w.key, withSeq(second)) {
		w.Error("who observes no longer was told")
	}
	b.observe(w.key)
	b.announcement(w.key, withSeq(h.announce("third").Seq))
}

func noteWithNumber(w *world) {
	a, b := w.join(), w.join()
	if n := b.readNote(w.key); n.Seq != 0 {
		w.Errorf("ReadNote without a note: got number %d, want 0", n.Seq)
	}
	h := a.hold(w.request())
	for range 2 {
		r := h.noteRequest("note")
		w.wantWritten("the holder", a.writeNote(r))
		if n := b.readNote(w.key); n.Seq != r.Seq {
			w.Errorf("ReadNote: got number %d, want %d", n.Seq, r.Seq)
		}
	}
}

func observedByNobody(w *world) {
	a, b := w.join(), w.join()
	a.observe(w.key)
	h := b.hold(w.request())
	ctx, cancel := a.call()
	defer cancel()
	if err := a.session.Close(ctx); err != nil {
		w.Errorf("Close: got %v, want no error", err)
	}
	seq := h.announce("after the end").Seq
	if err := a.observes().Observe(w.key, true); !errors.Is(err, store.ErrClosed) {
		w.Errorf("Observe after Close: got %v, want ErrClosed", err)
	}
	if err := a.observes().AnnounceEnd(ctx, w.key, h.Token); !errors.Is(err, store.ErrClosed) {
		w.Errorf("AnnounceEnd after Close: got %v, want ErrClosed", err)
	}
	if a.announced(w.key, withSeq(seq)) {
		w.Error("a session that was left was told")
	}
}

func announcedToNobody(w *world) {
	a, b := w.join(), w.join()
	h := a.hold(w.request())
	h.announce("to nobody")
	w.wantNote(b, "to nobody", h.Token)
}
