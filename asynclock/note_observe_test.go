// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

// A diary is what an observer was told.
type diary struct {
	stop func()

	mu      sync.Mutex
	entries []string
}

func (d *diary) note(entry string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries = append(d.entries, entry)
}

// observe begins a diary about the key.
func (w *world) observe(c *asynclock.Client) *diary {
	w.Helper()
	d := new(diary)
	var err error
	d.stop, err = c.Observe("key", asynclock.Observer{
		Announced: func(a asynclock.Announcement) {
			if a.Ended {
				d.note(fmt.Sprint("end ", a.Token))
			} else {
				d.note(fmt.Sprintf("%s %d of %s for %v", a.Data, a.Token, a.Holder, a.Remaining))
			}
		},
		Look: func(live bool) { d.note(fmt.Sprint("look ", live)) },
	})
	if err != nil {
		w.Fatal(err)
	}
	return d
}

// wants checks what was told since the last call.
func (d *diary) wants(w *world, want ...string) {
	w.Helper()
	w.wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.entries, want) {
		w.Errorf("told: got %q, want %q", d.entries, want)
	}
	d.entries = nil
}

func announce(tb testing.TB, l *asynclock.Lease, data string) {
	tb.Helper()
	if err := l.Announce(context.Background(), []byte(data), time.Hour); err != nil {
		tb.Errorf("Announce of %q: got %v, want no error", data, err)
	}
}

func TestAnAnnouncementIsToldToObserversUntilTheLeaseEnds(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		first, second := w.observe(theirs), w.observe(theirs)
		first.wants(w, "look true")
		second.wants(w, "look true")
		l := lock(w, ours, "key", asynclock.WithDescription("us"))
		setNote(w, l, "silent")
		w.pass(time.Second)
		announce(w, l, "first")
		announce(w, l, "second")
		token := l.Token()
		told := []string{fmt.Sprintf("first %d of us for %v", token, ttl-time.Second), fmt.Sprintf("second %d of us for %v", token, ttl-time.Second)}
		first.wants(w, told...)
		second.wants(w, told...)
		wantNote(w, theirs, "second", token)
		first.stop()
		first.stop() // again
		unlock(w, l)
		first.wants(w)
		second.wants(w, fmt.Sprint("end ", token))
		unlock(w, lock(w, ours, "key")) // which announces nothing
		second.wants(w)
		second.stop()
		before := len(w.store.Events(asynclocktest.Kind(store.EventAnnounced)))
		announce(w, lock(w, ours, "key"), "third")
		second.wants(w)
		if n := len(w.store.Events(asynclocktest.Kind(store.EventAnnounced))); n != before {
			w.Errorf("events for a client whose observers have left: got %d, want none", n-before)
		}
	})
}

func TestTheEndOfALostLeaseIsAnnouncedOnce(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		d := w.observe(theirs)
		l := lock(w, ours, "key", asynclock.WithDescription("us"))
		announce(w, l, "note")
		d.wants(w, "look true", fmt.Sprintf("note %d of us for %v", l.Token(), ttl))
		w.force(theirs, "key")
		d.wants(w, fmt.Sprint("end ", l.Token()))
		_ = l.Unlock(w.Context())
		d.wants(w)
	})
}

// Close waits for the end to be told, but not for ever.
func TestCloseTellsObserversOfTheEnd(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		d := w.observe(theirs)
		l := lock(w, ours, "key", asynclock.WithDescription("us"))
		announce(w, l, "note")
		d.wants(w, "look true", fmt.Sprintf("note %d of us for %v", l.Token(), ttl))
		w.store.Next(asynclocktest.AnnounceEnd.Any, asynclocktest.Slow(time.Second/4, time.Second/4))
		unlock(w, l)
		start := time.Now()
		if err := ours.Close(w.Context()); err != nil || time.Since(start) != time.Second/2 {
			w.Errorf("Close while the end is told: got %v after %v, want no error after 500ms", err, time.Since(start))
		}
		d.wants(w, fmt.Sprint("end ", l.Token()))
		other := w.client()
		l = lock(w, other, "key")
		announce(w, l, "note")
		w.store.Next(asynclocktest.AnnounceEnd.Any, asynclocktest.Hang)
		unlock(w, l)
		start = time.Now()
		if err := other.Close(w.Context()); err != nil || time.Since(start) > 3*time.Second {
			w.Errorf("Close while the end can't be told: got %v after %v, want no error within 3s", err, time.Since(start))
		}
	})
}

// Leases that share a holding have one token, and it ends with the last of them.
func TestTheEndOfASharedHoldingIsAnnouncedWhenItEnds(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(asynclock.WithReentry(true)), w.client()
		d := w.observe(theirs)
		outer := lock(w, ours, "key", asynclock.WithDescription("us"))
		inner, err := ours.Lock(outer.Context(), "key")
		if err != nil {
			w.Fatal(err)
		}
		later, err := ours.Lock(outer.Context(), "key")
		if err != nil {
			w.Fatal(err)
		}
		announce(w, inner, "inner")
		announce(w, outer, "outer")
		d.wants(w, "look true", fmt.Sprintf("inner %d of us for %v", outer.Token(), ttl), fmt.Sprintf("outer %d of us for %v", outer.Token(), ttl))
		unlock(w, inner)
		d.wants(w)
		unlock(w, outer)
		d.wants(w)
		unlock(w, later)
		d.wants(w, fmt.Sprint("end ", outer.Token()))
	})
}

// A call that sends nothing has begun nothing that could end.
func TestTheEndIsNotAnnouncedIfNoNoteWasSent(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		d := w.observe(theirs)
		d.wants(w, "look true")
		l := lock(w, ours, "key")
		ended, cancel := context.WithCancel(w.Context())
		cancel()
		wantError(w, l.Announce(ended, nil, time.Hour), context.Canceled)
		unlock(w, l)
		wantError(w, l.Announce(w.Context(), nil, time.Hour), asynclock.ErrUnlocked)
		d.wants(w)
	})
}

// A note whose answer is lost may have been announced, and so is the end.
func TestTheEndIsAnnouncedAlsoIfTheNoteWasNotConfirmed(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		d := w.observe(theirs)
		l := lock(w, ours, "key", asynclock.WithDescription("us"))
		w.store.Every(asynclocktest.WriteNote.Any, asynclocktest.Silence)
		ctx, cancel := context.WithTimeout(w.Context(), time.Millisecond)
		defer cancel()
		wantError(w, l.Announce(ctx, []byte("note"), time.Hour), asynclock.ErrOutcomeUnknown)
		d.wants(w, "look true", fmt.Sprintf("note %d of us for %v", l.Token(), ttl))
		unlock(w, l)
		d.wants(w, fmt.Sprint("end ", l.Token()))
	})
}

func TestObserversAreToldWhetherAnnouncementsComeThrough(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		first := w.observe(c)
		first.wants(w, "look true")
		w.store.Tell(0, store.Event{Kind: store.EventUnobserved, Key: "key"})
		first.wants(w, "look false")
		second := w.observe(c)
		second.wants(w)
		w.store.Tell(0, store.Event{Kind: store.EventObserving, Key: "key"})
		w.store.Tell(0, store.Event{Kind: store.EventObserving, Key: "another"})
		w.store.Tell(0, store.Event{Kind: store.EventAnnounced, Key: "key"}) // of nothing
		first.wants(w, "look true")
		second.wants(w, "look true")
		w.close(c)
		first.wants(w, "look false")
		second.wants(w, "look false")
		_, err := c.Observe("key", asynclock.Observer{})
		wantError(w, err, asynclock.ErrClosed)
		wantOp(w, err, "observe", "key")
		first.stop()
		second.stop()
	})
}

// An observer may be told of two changes at once, by different goroutines. The last that it is told is true.
func TestAnObserverIsToldLastWhatIsSo(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.observe(c)
		d, changed := new(diary), false
		if _, err := c.Observe("key", asynclock.Observer{Look: func(live bool) {
			if !changed {
				changed = true // before this call has had an effect
				w.store.Tell(0, store.Event{Kind: store.EventUnobserved, Key: "key"})
			}
			d.note(fmt.Sprint("look ", live))
		}}); err != nil {
			w.Fatal(err)
		}
		d.wants(w, "look false", "look true", "look false")
	})
}

func TestWhoBeginsToObserveWhileTheClientCloses(t *testing.T) {
	story(t, func(w *world) {
		var c *asynclock.Client
		c = w.clientOf(altered{Store: w.store, observe: func(on bool) {
			if on {
				go func() { _ = c.Close(context.Background()) }() // ends when the lease is unlocked
				w.wait()
			}
		}})
		l := lock(w, c, "key") // Close waits for it
		wantError(w, errOf(c.Observe("key", asynclock.Observer{})), asynclock.ErrClosed)
		unlock(w, l)
	})
}

func TestAStoreWithoutAnnouncements(t *testing.T) {
	story(t, func(w *world) {
		listens := w.observe(w.client())
		listens.wants(w, "look true")
		unheard := without(w.store, func(f *store.Features) { f.Announcements = false })
		for _, c := range []*asynclock.Client{w.clientOf(unheard), w.clientOf(altered{Store: w.memory, bare: true})} {
			wantError(w, errOf(c.Observe("key", asynclock.Observer{})), asynclock.ErrUnsupported)
		}
		c := w.clientOf(unheard)
		l := lock(w, c, "key")
		announce(w, l, "note")
		wantNote(w, c, "note", l.Token())
		unlock(w, l)
		listens.wants(w)
	})
}

func TestObservingThatMakesNoSense(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		for key, want := range map[string]error{"": asynclock.ErrInvalidKey, "\xff": asynclock.ErrInvalidKey} {
			wantError(w, errOf(c.Observe(key, asynclock.Observer{})), want)
		}
		var none *asynclock.Client
		wantError(w, errOf(none.Observe("key", asynclock.Observer{})), asynclock.ErrInvalidOption)
		var noLease *asynclock.Lease
		err := noLease.Announce(w.Context(), nil, time.Hour)
		wantError(w, err, asynclock.ErrInvalidOption)
		wantOp(w, err, "announce", "")
		stop, err := c.Observe("key", asynclock.Observer{}) // nobody is called
		if err != nil {
			w.Fatal(err)
		}
		announce(w, lock(w, c, "key"), "note")
		stop()
	})
}

// An observer may begin and end observing when it is told.
func TestObserversMayBeginAndEndObservingWhenTheyLook(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		observe := func(key string, look func()) (stop func()) {
			stop, err := c.Observe(key, asynclock.Observer{Look: func(live bool) {
				if live {
					look()
				}
			}})
			if err != nil {
				w.Fatal(err)
			}
			return stop
		}
		var looks []string
		stop := observe("key", func() {
			looks = append(looks, "first")
			observe("another", func() { looks = append(looks, "another") })()
			observe("key", func() { looks = append(looks, "second") })()
		})
		stop()
		if len(looks) != 3 {
			w.Errorf("got looks of %q, want one of each observer", looks)
		}
	})
}
