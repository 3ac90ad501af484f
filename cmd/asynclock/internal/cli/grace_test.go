// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// A grace is shown, and ends if somebody names it and knows that nothing was lost. A fresh server has one without evidence.
func TestGrace(t *testing.T) {
	t.Parallel()
	at := place{redistest.Start(t, servers.Config{}).URL() + "?failover_grace=1m"}
	got := at.run(t, "grace")
	got.want(t, 0)
	if want := regexp.MustCompile(`(?s)^history +([0-9a-f]{8})[0-9a-f]{32}\nbefore +not known.*\nwhy +started\n.*\nkeys +256 parts: nothing is granted in 256.*\nwarn +restart .* without data.*\nNothing is proven. If you know that nothing was lost: asynclock grace end --help\n$`); !want.MatchString(got.stdout) {
		t.Fatalf("got %s, want %s", got.stdout, want)
	}
	var shown struct {
		History, Why   string
		Parts, Waiting int
		Proven         bool
		Evidence       []struct{ Check, Verdict, Fact string }
		LeftMS         int64 `json:"left_ms"`
	}
	got = at.run(t, "grace", "--json")
	if err := json.Unmarshal([]byte(got.stdout), &shown); err != nil || shown.Why != "started" || shown.Parts != 256 || shown.LeftMS <= 0 || shown.Proven || len(shown.Evidence) != 1 {
		t.Errorf("got %s, %v", got.stdout, err)
	}
	for _, tt := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"end"}, 64, "give the HISTORY"},
		{[]string{"end", shown.History}, 75, "not proven that nothing was lost"},
		{[]string{"end", "--i-know-that-nothing-was-lost", strings.Repeat("0", 40)}, 75, "nothing was ended"},
		{[]string{"end", "--i-know-that-nothing-was-lost", shown.History[:7]}, 75, "nothing was ended"},
		{[]string{"end", "--i-know-that-nothing-was-lost", shown.History, "--before", strings.Repeat("0", 40)}, 75, "nothing was ended"},
	} {
		at.run(t, append([]string{"grace"}, tt.args...)...).want(t, tt.code, tt.says)
	}
	waiting := at.background(t.Context(), "run", "key", "--", program(t), "exit", "7")
	kit.Eventually(t, "somebody waits", func() bool { return strings.Contains(at.run(t, "ls").stdout, "key") })
	got = at.run(t, "grace", "end", "--i-know-that-nothing-was-lost", shown.History[:8])
	got.want(t, 0)
	if want := shown.History[:8] + ": ended in 256 parts of the keys; waiters told: 1\n"; got.stdout != want {
		t.Errorf("got %q, want %q", got.stdout, want)
	}
	finished(t, waiting).want(t, 7, "") // it may have said that it waits
	got = at.run(t, "grace")
	got.want(t, 0)
	if got.stdout != "Keys are granted: no server has a grace.\n" {
		t.Errorf("got %q", got.stdout)
	}
	at.run(t, "grace", "end", shown.History).want(t, 0, "nothing was ended")
	at.run(t, "--prefix", "other", "grace").want(t, 0)
}

// Other stores have no grace, and say so.
func TestNoGrace(t *testing.T) {
	t.Parallel()
	at := place{redistest.Start(t, servers.Config{}).URL()}
	at.url = "spring+" + at.url + "?registry=r"
	at.run(t, "grace").want(t, 70, "no grace")
	at.run(t, "grace", "end", "0123456789").want(t, 70, "no grace")
}
