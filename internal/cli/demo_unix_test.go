// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cli_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/demo"
)

// shortDemo is the demo in a hurry.
func shortDemo(t *testing.T, out *buffer) demo.Options {
	return demo.Options{
		Command:   []string{program(t, beWorker), "demo-worker"},
		Out:       out,
		Processes: 3,
		Race:      200 * time.Millisecond,
		Guard:     300 * time.Millisecond,
		TTL:       600 * time.Millisecond,
		Pause:     50 * time.Millisecond,
	}
}

// temporary makes a new directory the one for temporary files, and checks in
// the end that it is empty.
func temporary(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Cleanup(func() {
		left, err := os.ReadDir(dir)
		if err != nil || len(left) > 0 {
			t.Errorf("got files %v (%v), want none left", left, err)
		}
	})
	return dir
}

func TestDemo(t *testing.T) {
	temporary(t)
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
	temporary(t)
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
	temporary(t)
	var out buffer
	options := shortDemo(t, &out)
	options.Command = append(options.Command, "--no-such-flag")
	if err := demo.Run(t.Context(), options); err == nil || !strings.Contains(err.Error(), "unknown flag: --no-such-flag") {
		t.Errorf("got %v, want what the worker said", err)
	}
}

// processesWith returns the command lines of all processes that name dir.
func processesWith(t *testing.T, dir string) (found []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && bytes.Contains(line, []byte(dir)) {
			found = append(found, string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return found
}

// TestDemoInterrupted: Ctrl-C and a broken pipe leave no process and no file, and
// a kill no process.
func TestDemoInterrupted(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("finds the processes in /proc")
	}
	bin := program(t, beWorker)
	t.Run("Ctrl-C", func(t *testing.T) {
		dir := temporary(t)
		p := startProcess(t, bin, "demo")
		until(t, "the workers", func() bool { return len(processesWith(t, dir)) == 5 })
		if err := p.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		p.result(t).want(t, 130, "interrupted")
		if left := processesWith(t, dir); len(left) > 0 {
			t.Errorf("got %q left, want none", left)
		}
	})
	t.Run("broken pipe", func(t *testing.T) {
		dir := temporary(t)
		p := &process{Cmd: exec.Command(bin, "demo")}
		p.Stdout, p.Stderr = closedPipe(t), &p.stderr
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		p.result(t).want(t, 130, "interrupted")
		if left := processesWith(t, dir); len(left) > 0 {
			t.Errorf("got %q left, want none", left)
		}
	})
	t.Run("kill", func(t *testing.T) {
		dir := t.TempDir() // nobody is left to remove the files
		t.Setenv("TMPDIR", dir)
		p := startProcess(t, bin, "demo")
		until(t, "the workers", func() bool { return len(processesWith(t, dir)) == 5 })
		if err := p.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		p.result(t)
		until(t, "the end of the workers", func() bool { return len(processesWith(t, dir)) == 0 })
	})
}
