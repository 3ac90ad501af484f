// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
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
			oblivious := altered{Store: w.store, released: func(r *store.ReleaseReply) { *r = store.ReleaseReply{Cause: c.cause} }}
			err := lock(w, w.clientOf(oblivious), "key").Unlock(w.Context())
			wantError(w, err, c.wants...)
			if !strings.Contains(err.Error(), c.text) {
				w.Errorf("got error %q, want it to say %q", err, c.text)
			}
		})
	}
}
