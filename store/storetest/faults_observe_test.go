// SPDX-License-Identifier: Apache-2.0

package storetest_test

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// told changes the announcements that are told.
func told(change func(*store.Announcement)) func(event) (event, bool) {
	return func(e event) (event, bool) {
		if e.Kind == store.EventAnnounced {
			a := *e.Announcement
			change(&a)
			e.Announcement = &a
		}
		return e, true
	}
}

// untold loses the announcements that match.
func untold(match func(key string, a *store.Announcement) bool) func(event) (event, bool) {
	return func(e event) (event, bool) {
		return e, e.Kind != store.EventAnnounced || !match(e.Key, e.Announcement)
	}
}

// onlyOn forgets to end what Observe has begun.
func onlyOn(c *session, key string, on bool) error {
	if !on {
		return nil
	}
	return c.Session.(store.ObserveSession).Observe(key, true)
}

const (
	asWritten = "an announced note is told to observers as it was written"
	endIsTold = "the end of a lease is told to observers with its token"
	ofItsKey  = "an announcement is told to observers of its key only"
)

var observeFaults = []fault{
	{breaks: "an announcement ends at its first zero byte", caught: asWritten, event: told(func(a *store.Announcement) {
		a.Data, _, _ = bytes.Cut(a.Data, []byte{0})
	})},
	{breaks: "an announced description ends at its first space", caught: asWritten, event: told(func(a *store.Announcement) {
		a.Holder, _, _ = strings.Cut(a.Holder, " ")
	})},
	{breaks: "an announcement has no token", caught: asWritten, event: told(func(a *store.Announcement) { a.Token = 0 })},
	{breaks: "an announcement has the TTL of the note", caught: asWritten, event: told(func(a *store.Announcement) { a.Remaining = 24 * time.Hour })},
	{breaks: "an announcement is told and not written", caught: asWritten, noted: read(func(n *note) { n.Data = nil })},
	{breaks: "no announcement comes", caught: asWritten, event: untold(func(string, *store.Announcement) bool { return true })},
	{breaks: "an announcement comes before the note is refused", caught: "an announced note that was refused is told to nobody", note: func(c *session, r noteRequest) error {
		err := c.writeNote(context.Background(), r)
		if err != nil && r.Announce {
			h := c.inspect(r.Key)
			c.store.tellAll(event{Kind: store.EventAnnounced, Key: r.Key, Announcement: &store.Announcement{Token: h.Token, Seq: r.Seq, Data: r.Data}})
		}
		return err
	}},
	{breaks: "no end is told", caught: endIsTold, event: untold(func(_ string, a *store.Announcement) bool { return a.Ended })},
	{breaks: "an end is told without its token", caught: endIsTold, event: told(func(a *store.Announcement) {
		if a.Ended {
			a.Token = 0
		}
	})},
	{breaks: "an end that is told ends the holding", caught: endIsTold, ended: func(c *session, key string, token int64) error {
		_, _ = c.Session.Force(context.Background(), key, 0)
		return c.Session.(store.ObserveSession).AnnounceEnd(context.Background(), key, token)
	}},
	{breaks: "announcements go to everybody", caught: ofItsKey, note: func(c *session, r noteRequest) error {
		err := c.writeNote(context.Background(), r)
		if err == nil && r.Announce {
			c.store.tellAll(event{Kind: store.EventAnnounced, Key: r.Key, Announcement: &store.Announcement{Token: r.Token, Seq: r.Seq, Data: r.Data}})
		}
		return err
	}},
	{breaks: "announcements of long keys are lost", caught: ofItsKey, event: untold(func(key string, _ *store.Announcement) bool { return len(key) == store.MaxKeyLen })},
	{breaks: "who writes is not told", caught: "an announcement is told to every observer", note: func(c *session, r noteRequest) error {
		observing := c.Session.(store.ObserveSession)
		if r.Announce {
			_ = observing.Observe(r.Key, false)
		}
		return c.writeNote(context.Background(), r)
	}},
	{breaks: "each note is announced", caught: "a note without announcement is told to nobody", note: written(func(_ *session, r *noteRequest) { r.Announce = true })},
	{breaks: "observing does not end", caught: "who observes no longer is told nothing", observe: onlyOn},
	{breaks: "observing begins once", caught: "who observes no longer is told nothing", observe: func(c *session, key string, on bool) error {
		if on && c.store.calls.Add(1) > 2 {
			c.store.tellAll(event{Kind: store.EventObserving, Key: key})
			return nil
		}
		return c.Session.(store.ObserveSession).Observe(key, on)
	}},
	{breaks: "a note is read without its number", caught: "a note is read with its number", noted: read(func(n *note) { n.Seq = 0 })},
	{breaks: "a note is read with the number 1", caught: "a note is read with its number", noted: read(func(n *note) { n.Seq = 1 })},
	{breaks: "a session that was left observes", caught: "observing is not for sessions that were left", leave: func(*session) error { return nil }},
	{breaks: "a store without announcements writes no announced note", caught: "a store without announcements writes the note all the same", features: func(f store.Features) store.Features {
		f.Announcements = false
		return f
	}, note: func(c *session, r noteRequest) error {
		if r.Announce {
			return store.ErrUnsupported
		}
		return c.writeNote(context.Background(), r)
	}},
}
