// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/nemesis/check"
)

func TestPageIsAsWritten(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/chaos.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(page), introduction) {
		t.Error("docs/chaos.md does not begin with internal/nemesis/page.md: make chaos writes it, or copy the text")
	}
}

func TestDocument(t *testing.T) {
	t.Parallel()
	got := document([]verdict{{defaultSettings(standalone, 7, time.Minute, ""), check.Report{
		Leases: 3, Failed: map[string]int{"held": 2}, Writes: map[string]int{"file": 1},
		Faults:     []check.FaultFigures{{Name: "FLUSHALL", Count: 4, Worst: time.Second, Excused: 5}},
		Violations: []check.Violation{{Rule: "overlap", Key: "k", Text: "two"}},
	}}})
	for _, want := range []string{
		"### Seed 7, standalone, 1m0s", "| faults | 4 |", "| leases | 3 |", "| requests that failed: held | 2 |",
		"| writes accepted by the resource file | 1 |", "| FLUSHALL | 4 | 1s | 5 |", `overlap: key "k": two`, "| violations | 1 |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
}
