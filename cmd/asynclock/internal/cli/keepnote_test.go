// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// TestKeepNote: a note that is not there any more is written again, until the end.
func TestKeepNote(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locks, err := asynclock.New(memstore.New())
		if err != nil {
			t.Fatal(err)
		}
		defer locks.Close(t.Context())
		lease, err := locks.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		defer lease.Unlock(t.Context())
		want := func(when, text string) {
			t.Helper()
			if note, err := locks.Note(t.Context(), "k"); err != nil || string(note.Data) != text {
				t.Errorf("%s: got %q, %v; want %q", when, note.Data, err, text)
			}
		}
		replace := func() {
			t.Helper()
			if err := lease.SetNote(t.Context(), []byte("another"), time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		a := &app{messages: &messages{out: io.Discard}}
		end := a.keepNote(lease, "mine")
		want("at once", "mine")
		replace()
		time.Sleep(keepNoteEvery + time.Second)
		want("later", "mine")
		replace()
		end()
		time.Sleep(2 * keepNoteEvery)
		want("after the end", "another")
	})
}
