// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"encoding/json"
	"testing"
	"time"
)

func TestNote(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	redis.run(t, "note", "k").want(t, 75, `nobody holds "k"`)
	lease := redis.hold(t, "k")[0]
	redis.run(t, "note", "k").want(t, 75, `a test, the holder of "k", has left no note`)
	got := redis.run(t, "note", "k", "--json")
	got.want(t, 75)
	if note := object(t, got.stdout, "key", "held", "holder", "token", "note"); note["note"] != "" || note["held"] != true {
		t.Errorf("got %v, want a holder without a note", note)
	}
	set := func(note string) {
		t.Helper()
		if err := lease.SetNote(t.Context(), []byte(note), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	set("10.0.0.7:8080")
	got = redis.run(t, "note", "k")
	got.want(t, 0)
	if got.stdout != "10.0.0.7:8080\n" {
		t.Errorf("got %q, want the note", got.stdout)
	}
	got = redis.run(t, "note", "k", "--json")
	got.want(t, 0)
	note := object(t, got.stdout, "key", "held", "holder", "token", "note")
	if token, _ := note["token"].(json.Number).Int64(); note["note"] != "10.0.0.7:8080" || note["held"] != true || token != lease.Token() {
		t.Errorf("got %v, want the note and its holder", note)
	}
	set("a\x1b[31m")
	if got := redis.run(t, "note", "k"); got.stdout != `"a\x1b[31m"`+"\n" {
		t.Errorf("got %q, want the note quoted", got.stdout)
	}
}

// TestNoteFollows: as it is, and each change.
func TestNoteFollows(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	follows := redis.talk(t, "note", "k", "--follow")
	follows.says(t, "\n")
	inJSON := redis.talk(t, "note", "k", "--follow", "--json")
	inJSON.says(t, `{"key":"k","held":false,"holder":"","token":0,"note":""}`+"\n")
	holds := redis.talk(t, "hold", "k", "--note", "first")
	follows.says(t, "\nfirst\n")
	inJSON.says(t, `"note":"first"}`+"\n")
	holds.stdin.Close()
	finished(t, holds.done).want(t, 0)
	follows.says(t, "\nfirst\n\n")
	redis.talk(t, "hold", "k", "--note", "second").says(t, "\n")
	follows.says(t, "\nfirst\n\nsecond\n")
}
