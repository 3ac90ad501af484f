// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

// TestNotesWhoseTimeIsOverAreSwept: others stay, also without a row of their key's lock.
func TestNotesWhoseTimeIsOverAreSwept(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d, WithoutNotifications())
		c := join(t, st)
		for _, key := range []string{"old", "new"} {
			h := c.Hold(sqltest.Request(key, "a"))
			r := store.NoteRequest{Key: key, Owner: "a", Token: h.Token, Seq: 1, Data: []byte(key), TTL: time.Hour}
			if err := c.session.WriteNote(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			c.Release(key, "a")
		}
		d.Run(t, "UPDATE "+st.settings.prefix+"note SET note_until = '2020-01-01' WHERE "+keyColumn[d.Kind]+" = 'old'")
		d.Run(t, "DELETE FROM "+st.settings.prefix+"lock WHERE token > 0")
		d.RunRoutine(t, st.settings.prefix+"sweep(100)")
		if got := d.Texts(t, "SELECT "+keyColumn[d.Kind]+" FROM "+st.settings.prefix+"note"); !slices.Equal(got, []string{"new"}) {
			t.Errorf("notes after a sweep: got %q, want the new one only", got)
		}
		n, err := c.session.ReadNote(t.Context(), "new")
		if err != nil || string(n.Data) != "new" || n.Held {
			t.Errorf("ReadNote: got %+v, %v; want the note of a free key", n, err)
		}
	})
}

// TestANoteOfALargerTokenThatHasEndedIsReplaced: its row may still be there.
func TestANoteOfALargerTokenThatHasEndedIsReplaced(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d, WithoutNotifications())
		c := join(t, st)
		h := c.Hold(sqltest.Request("key", "a"))
		r := store.NoteRequest{Key: "key", Owner: "a", Token: h.Token + 1, Seq: 1, Data: []byte("later"), TTL: time.Hour}
		if err := c.session.WriteNote(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		r.Token, r.Data = h.Token, []byte("earlier")
		if err := c.session.WriteNote(t.Context(), r); !errors.Is(err, store.ErrStolen) {
			t.Errorf("WriteNote with a smaller token: got %v, want ErrStolen", err)
		}
		d.Run(t, "UPDATE "+st.settings.prefix+"note SET note_until = '2020-01-01' WHERE token > 0")
		if err := c.session.WriteNote(t.Context(), r); err != nil {
			t.Errorf("WriteNote when that has ended: got %v, want no error", err)
		}
	})
}
