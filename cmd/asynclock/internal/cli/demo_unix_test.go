// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cli_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/cmd/asynclock/internal/demo"
)

// shortDemo is the demo in a hurry.
func shortDemo(t *testing.T, out *buffer) demo.Options {
	return demo.Options{
		Command:   []string{program(t), "demo-worker"},
		Out:       out,
		Processes: 3,
		Race:      200 * time.Millisecond,
		Guard:     300 * time.Millisecond,
		TTL:       600 * time.Millisecond,
		Pause:     50 * time.Millisecond,
	}
}

// temporary makes a directory for temporary files, and checks in the end that it is empty.
func temporary(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() {
		left, err := os.ReadDir(dir)
		if err != nil || len(left) > 0 {
			t.Errorf("got files %v (%v), want none left", left, err)
		}
	})
	return dir
}

func TestDemo(t *testing.T) {
	t.Setenv("TMPDIR", temporary(t))
	var out buffer
	if err := demo.Run(t.Context(), shortDemo(t, &out)); err != nil {
		t.Fatalf("got %v, want nil; it printed:\n%s", err, out.String())
	}
	story := out.String()
	for _, pattern := range []string{
		`(?m)^   \d+ updates were made, the file counts \d+: \d+ were lost\.$`,
		`(?m)^   \d+ updates were made, the file counts \d+: none was lost\.$`,
		`The key changed hands \d+ times a second, in turn, A \d+, B \d+, C \d+\.`,
		`Process A holds the lock with token \d{16} and dies\.`,
		`Process [BC] has it after \d`,
		`Process C has the lock after .* its write is taken\.`,
		// The second if the pause comes while a renewal is under way.
		`Process B runs on, learns "asynclock: lease lost: (expired|renewals failed until the trust deadline: .*)"`,
		`refused, token \d{16} is older than \d{16}\.`,
		`updates lost +\d+ +0\n`,
		`No update made under the lock was lost\.`,
	} {
		if !regexp.MustCompile(pattern).MatchString(story) {
			t.Errorf("got no %q in:\n%s", pattern, story)
		}
	}
	if strings.Contains(story, "\x1b") {
		t.Errorf("got control sequences without a terminal: %q", story)
	}
}

func TestDemoCanceled(t *testing.T) {
	t.Setenv("TMPDIR", temporary(t))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var out buffer
	if err := demo.Run(ctx, shortDemo(t, &out)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
}

// TestDemoWorkerBroken: a worker that dies by itself ends the demo, with what
// it had to say.
func TestDemoWorkerBroken(t *testing.T) {
	t.Setenv("TMPDIR", temporary(t))
	var out buffer
	options := shortDemo(t, &out)
	options.Command = append(options.Command, "--no-such-flag")
	if err := demo.Run(t.Context(), options); err == nil || !strings.Contains(err.Error(), "unknown flag: --no-such-flag") {
		t.Errorf("got %v, want what the worker said", err)
	}
}
