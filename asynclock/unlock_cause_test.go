// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

// An Unlock that finds the key lost says what the store knows of the reason, and
// so does the log.
func TestUnlockSaysWhyTheLeaseWasLost(t *testing.T) {
	scene(t, "nobody has it", func(w *world) {
		var log notebook
		l := lock(w, w.client(log.option(slog.LevelWarn)), "key")
		w.store.EveryEvent(asynclocktest.AnyEvent, asynclocktest.Drop)
		if _, err := w.session().Force(w.Context(), "key", 0); err != nil {
			w.Fatal(err)
		}
		wantError(w, l.Unlock(w.Context()), asynclock.ErrExpired)
		w.wait()
		log.wantLine(w, "level=WARN", "lost", "key=key", "expired")
	})
	scene(t, "another has it", func(w *world) {
		var log notebook
		l, other := lock(w, w.client(log.option(slog.LevelWarn)), "key"), w.client()
		w.store.EveryEvent(asynclocktest.AnyEvent, asynclocktest.Drop)
		if _, err := w.session().Force(w.Context(), "key", 0); err != nil {
			w.Fatal(err)
		}
		theirs := lock(w, other, "key")
		wantError(w, l.Unlock(w.Context()), asynclock.ErrStolen)
		w.wait()
		log.wantLine(w, "level=WARN", "lost", "key=key", "another owner")
		wantValid(w, theirs)
	})
	odd := errors.New("the session moved")
	for name, c := range map[string]struct {
		cause error
		wants []error
		text  string
	}{
		"the store does not know":         {nil, []error{asynclock.ErrLost}, "until the unlock"},
		"the cause is of an unknown kind": {odd, []error{asynclock.ErrLost, odd}, "the session moved"},
	} {
		scene(t, name, func(w *world) {
			client, err := asynclock.New(oblivious{w.store, c.cause})
			if err != nil {
				w.Fatal(err)
			}
			w.Cleanup(func() { abandon(client) })
			err = lock(w, client, "key").Unlock(w.Context())
			wantError(w, err, c.wants...)
			if !strings.Contains(err.Error(), c.text) {
				w.Errorf("got error %q, want it to say %q", err, c.text)
			}
		})
	}
}

// An oblivious store does not know of any holding that is released.
type oblivious struct {
	store.Store

	cause error
}

func (o oblivious) Open(id string, events func(store.Event)) (store.Session, error) {
	s, err := o.Store.Open(id, events)
	return obliviousSession{s, o.cause}, err
}

type obliviousSession struct {
	store.Session

	cause error
}

func (o obliviousSession) Release(_ context.Context, batch []store.ReleaseRequest) []store.ReleaseReply {
	replies := make([]store.ReleaseReply, len(batch))
	for i := range replies {
		replies[i].Cause = o.cause
	}
	return replies
}
