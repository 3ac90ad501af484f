// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

func writeNote(t *testing.T, c store.Session, key string, data []byte) {
	t.Helper()
	acquire(t, c, key, "holder of "+key)
	r := store.NoteRequest{Key: key, Owner: "holder of " + key, Token: 1, Seq: 1, Data: data, TTL: time.Minute}
	if err := c.(store.NoteSession).WriteNote(t.Context(), r); err != nil {
		t.Fatalf("WriteNote: got %v, want no error", err)
	}
}

func TestNotesWhoseTimeIsOverAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New()
		c := join(t, s, nil)
		for i := range 100 {
			writeNote(t, c, fmt.Sprintf("old %d", i), nil)
		}
		time.Sleep(time.Minute)
		for range 1000 {
			writeNote(t, c, "new", nil)
		}
		if got := len(s.notes); got != 1 {
			t.Errorf("notes remembered: got %d, want 1, the one that has not ended", got)
		}
	})
}

func TestANoteIsACopy(t *testing.T) {
	t.Parallel()
	c := join(t, New(), nil)
	data := []byte("note")
	writeNote(t, c, "key", data)
	data[0] = 'X'
	for range 2 {
		n, err := c.(store.NoteSession).ReadNote(t.Context(), "key")
		if err != nil || string(n.Data) != "note" {
			t.Errorf("ReadNote: got %q, %v; want %q as written", n.Data, err, "note")
		}
		n.Data[0] = 'Y'
	}
}
