// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

var good = []history.Record{
	{Kind: history.Run, Seed: 7, Site: "standalone", End: 100},
	{Kind: history.Held, Op: "1", Key: "k", How: "Lock", Begin: 1, End: 2, Token: 7, TTL: 100},
	{Kind: history.Ended, Op: "1", Valid: 3, Begin: 4, End: 5, Unlocked: true, Refused: 1},
	{Kind: history.Failed, Op: "2", Key: "k", How: "TryLock", Begin: 1, End: 2, Error: "held"},
	{Kind: history.Write, Op: "1", Key: "k", Resource: "file", Token: 7, Read: 0, Wrote: 1},
	{Kind: history.Fault, Fault: "kill", Whom: "w1", Begin: 5, End: 6, Lossy: true, Step: 3},
	{Kind: history.Bye, Whom: "w1", Asked: 2, Told: 2},
	{Kind: history.Left, Error: "a goroutine"},
	{Kind: history.Held, Op: "3.1", Whole: "3", Key: "k", How: "LockAll", Begin: 1, End: 2, Token: 8, TTL: 100},
	{Kind: history.Ended, Op: "3.1", Valid: 3, Begin: 4, End: 5, Lapsed: 4},
	{Kind: history.Seen, Whom: "w1/o", Key: "e", How: "Observe", Begin: 1, End: 2, Token: 7, Value: "w1/1"},
	{Kind: history.Began, Op: "4", Key: "j", Begin: 1, End: 2, Token: 7, Slot: 2000, Every: 1000, Attempt: 1},
	{Kind: history.Queued, Op: "o", Key: "r", Begin: 1, End: 2, TTL: 100},
	{Kind: history.Admitted, Op: "o", Key: "r", Begin: 1, End: 3, TTL: 100, Token: 9},
	{Kind: history.Heard, Op: "o", Key: "r", Begin: 4, End: 4, TTL: 100, Mode: history.Shared},
	{Kind: history.Gone, Op: "o", Key: "r", Begin: 5, End: 5, TTL: 100},
	{Kind: history.Round, Op: "4", Key: "j", How: "Do", Begin: 1, End: 5, Token: 7, Slot: 2000, Every: 1000, Attempt: 1, Ran: true, Over: true},
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, part := range []string{"a", "b"} {
		f, err := history.Create(dir, part)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range good {
			f.Add(r)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	got, err := history.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if got[i].Wall == 0 {
			t.Errorf("record %d has no wall time", i)
		}
		got[i].Wall = 0
	}
	if want := slices.Concat(good, good); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTwoPartsOfOneNameAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, err := history.Create(dir, "a")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := history.Create(dir, "a"); err == nil {
		t.Error("got no error, want one: it would overwrite the first")
	}
}

func TestLineThatAKillCutShortDoesNotCount(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := `{"k":"left","err":"x"}` + "\n" + `{"k":"le`
	if err := os.WriteFile(filepath.Join(dir, "a.jsonl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := history.ReadDir(dir)
	if err != nil || len(got) != 1 {
		t.Errorf("got %v, %v, want one record", got, err)
	}
}

func TestNonsenseIsRefused(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"", "null", "{}", "[]", "x", `{"k":"no such"}`,
		`{"k":"left"}`,
		`{"k":"run","seed":7}`,
		`{"k":"left","err":"x","what":1}`,
		`{"k":"left","err":"x"}{"k":"left","err":"x"}`,
		`{"k":"held","op":"1","key":"k","b":1,"e":2,"ttl":5}`,
		`{"k":"held","op":"1","key":"k","b":2,"e":1,"ttl":5,"token":1}`,
		`{"k":"ended","op":"1","b":1,"e":2,"valid":3}`,
		`{"k":"failed","op":"1","key":"k","b":1,"e":2}`,
		`{"k":"write","op":"1","key":"k","res":"file","token":1}`,
		`{"k":"fault","b":1,"e":2}`,
		`{"k":"bye","whom":"w","asked":1,"told":2}`,
		`{"k":"ended","op":"1","b":1,"e":2,"lapsed":-1}`,
		`{"k":"seen","key":"e","how":"Current","b":1,"e":2}`,
		`{"k":"seen","whom":"w","key":"e","how":"Current","b":1,"e":2,"token":-1}`,
		`{"k":"began","op":"1","key":"j","b":1,"e":2,"token":7,"every":5}`,
		`{"k":"round","op":"1","key":"j","b":1,"e":2}`,
		`{"k":"queued","op":"o","b":1,"e":2,"ttl":5}`,
		`{"k":"gone","op":"o","key":"r","b":1,"e":2}`,
		`{"k":"round","op":"1","key":"j","b":1,"e":2,"every":5,"ran":true,"running":true}`,
	} {
		if got, err := history.Read(nil, strings.NewReader(line+"\n")); err == nil {
			t.Errorf("%s: got %v, want an error", line, got)
		}
	}
}

func TestTheClockRises(t *testing.T) {
	t.Parallel()
	last := history.Now()
	for range 1000 {
		now := history.Now()
		if now < last {
			t.Fatalf("got %v after %v", now, last)
		}
		last = now
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"k":"held","op":"1","key":"k","b":1,"e":2,"ttl":5,"token":1}` + "\n")
	f.Add(`{"k":"fault","fault":"kill","b":1,"e":2}` + "\n" + `{"k":"le`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := history.Read(nil, strings.NewReader(text))
		if err != nil {
			return
		}
		for _, r := range got {
			if err := r.Check(); err != nil {
				t.Errorf("accepted %v, which is bad: %v", r, err)
			}
		}
	})
}
