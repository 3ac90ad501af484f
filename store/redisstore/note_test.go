// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/store"
)

// A note that is damaged, or beside a damaged lock, is reported and left alone.
func TestForeignNotesAreReportedAndLeftAlone(t *testing.T) {
	const key, owner, token = "key", "holder", int64(1e15)
	record := []string{"SET", "l", "1000000000000000 holder - - somebody"}
	damages := []struct {
		name  string
		setup [][]string
		spare string // the call that does not look there
	}{
		{"note is a list", [][]string{record, {"RPUSH", "n", "x"}}, ""},
		{"note is text", [][]string{record, {"SET", "n", "leader"}}, ""},
		{"note is empty", [][]string{record, {"SET", "n", ""}}, ""},
		{"note without a number", [][]string{record, {"SET", "n", "5 x y"}}, ""},
		{"note's token is too large", [][]string{record, {"SET", "n", "99999999999999999999 1 x"}}, ""},
		{"note's number is too large", [][]string{record, {"SET", "n", "5 99999999999999999999 x"}}, ""},
		{"record is a list", [][]string{{"RPUSH", "l", "x"}}, ""},
		{"record is text", [][]string{{"SET", "l", "locked by the Java side"}}, ""},
		{"record is empty", [][]string{{"SET", "l", ""}}, ""},
		{"record's token is too large", [][]string{{"SET", "l", "99999999999999999999 holder - - x"}}, ""},
		{"members are a string", [][]string{{"SET", "l", "=r 5 5 0 0 0 0 0 -"}, {"SET", "s", "x"}}, "write"},
	}
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		for _, damage := range damages {
			for _, kind := range []byte("lns") {
				sv.Do(t, "DEL", sv.redisKey(key, kind))
			}
			for _, command := range damage.setup {
				command = slices.Clone(command)
				command[1] = sv.redisKey(key, command[1][0])
				sv.Do(t, command...)
			}
			before := sv.dump(t, key) + sv.dumpNote(t, key)
			r := store.NoteRequest{Key: key, Owner: owner, Token: token, Seq: 1, Data: []byte("new"), TTL: long}
			_, readErr := c.session.ReadNote(t.Context(), key)
			for call, err := range map[string]error{"write": c.session.WriteNote(t.Context(), r), "read": readErr} {
				if call == damage.spare {
					continue
				}
				if !errors.Is(err, store.ErrForeignData) || strings.Contains(fmt.Sprint(err), owner) {
					t.Errorf("%s, %s: got %v, want ErrForeignData, and no owner in it", damage.name, call, err)
				}
			}
			if after := sv.dump(t, key) + sv.dumpNote(t, key); after != before {
				t.Errorf("%s: changed %q to %q, want nothing changed", damage.name, before, after)
			}
		}
	})
}

// A note is one Redis key, which ends by itself, and has nothing of the owner.
func TestANoteIsAKeyThatEnds(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		token := c.Hold("key", "holder").Token
		r := store.NoteRequest{Key: "key", Owner: "holder", Token: token, Seq: 7, Data: []byte("data \x00 and more"), TTL: long}
		if err := c.session.WriteNote(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		got := sv.Do(t, "GET", sv.redisKey("key", 'n'))
		if want := fmt.Sprintf("%d 7 data \x00 and more", token); got != want {
			t.Errorf("the note's value: got %q, want %q", got, want)
		}
		if left := sv.Number(t, "PTTL", sv.redisKey("key", 'n')); left <= 0 || left > long.Milliseconds() {
			t.Errorf("the note's TTL: got %d ms, want %v at most", left, long)
		}
	})
}

func (sv *server) dumpNote(t *testing.T, key string) string {
	t.Helper()
	name := sv.redisKey(key, 'n')
	if kind := sv.Do(t, "TYPE", name); kind != "string" {
		return " n=a " + kind
	}
	return " n=" + sv.Do(t, "GET", name)
}
