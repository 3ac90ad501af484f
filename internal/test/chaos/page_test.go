// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/chaos/check"
)

func TestPageIsAsWritten(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/chaos.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(page), introduction) {
		t.Error("docs/chaos.md does not begin with internal/test/chaos/page.md: make chaos writes it, or copy the text")
	}
}

func TestDocument(t *testing.T) {
	t.Parallel()
	got := document([]verdict{{defaultSettings(standalone, 7, time.Minute, ""), check.Report{
		Leases: 3, Parts: 2, Looks: 7, Runs: 9, Repeats: 4, Slots: 8, Due: 6, Firm: 4, Undone: 5, Unheard: time.Second, Moved: 8, Failed: map[string]int{"held": 2}, Writes: map[string]int{"file": 1},
		Faults:     []check.FaultFigures{{Name: "FLUSHALL", Count: 4, Worst: time.Second, Excused: 5}},
		Violations: []check.Violation{{Rule: "overlap", Key: "k", Text: "two"}},
	}}})
	for _, want := range []string{
		"### Seed 7, standalone, 1m0s", "| faults | 4 |", "| leases | 3 |", "| of these, of one of several keys | 2 |", "| looks at who leads | 7 |",
		"| runs of jobs | 9 |", "excuses it | 4 |", "| intervals with a run | 8 |", "could be reached | 6 |", "need a run | 4 |", "the others, without a run | 5 |", "at most | 1s |", "in the queue: not judged | 8 |", "| requests that failed: held | 2 |",
		"| writes accepted by the resource file | 1 |", "| FLUSHALL | 4 | 1s | 5 |", `overlap: key "k": two`, "| violations | 1 |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
}

// TestHistoryIsJudgedByWhatItSaysOfItself: a history can be judged when its run
// is long over, and whoever judges it need not know how it was made.
func TestHistoryIsJudgedByWhatItSaysOfItself(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(dir+"/x.jsonl", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const (
		made = `{"k":"run","seed":7,"site":"cluster","e":60000000000,"build":"abc","crew":"{\"Workers\":2,\"Callers\":3,\"Keys\":[\"a\"],\"TTLs\":[1000000000]}"}` + "\n"
		one  = `{"k":"held","op":"1","key":"a","b":1,"e":2,"ttl":9,"token":5}` + "\n"
		two  = one + `{"k":"held","op":"2","key":"a","b":3,"e":4,"ttl":9,"token":5}` + "\n"
	)
	for text, want := range map[string]bool{made: false, made + one: true, made + two: false} { // without a lease, nothing was judged
		write(text)
		var out strings.Builder
		if ok, err := runMain(t.Context(), []string{"-judge", dir, "-report", dir + "/page.md"}, &out); err != nil || ok != want {
			t.Errorf("got %t, %v, want %t; it says %s", ok, err, want, out.String())
		}
		page, err := os.ReadFile(dir + "/page.md")
		if err != nil || !strings.Contains(string(page), "### Seed 7, cluster, 1m0s\n\n2 processes of 3 callers on 1 keys, TTLs [1s].\nCommit abc.\n") {
			t.Errorf("got %s, %v, want a page of that run", page, err)
		}
	}
	for _, text := range []string{"", two, `{"k":"run","seed":7,"site":"cluster","e":60,"crew":"{}"}` + "\n", `{"k":"run","site":"x","e":60,"crew":"x"}` + "\n"} {
		write(text)
		if ok, err := runMain(t.Context(), []string{"-judge", dir}, new(strings.Builder)); err == nil || ok {
			t.Errorf("%s: got %t, %v, want an error", text, ok, err)
		}
	}
}
