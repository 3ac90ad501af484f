// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

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

// temporaryIn is the environment of processes with a directory for temporary files.
func temporaryIn(dir string) []string { return append(os.Environ(), "TMPDIR="+dir) }

// TestDemoInterrupted: Ctrl-C and a broken pipe leave no process and no file, and
// a kill no process.
func TestDemoInterrupted(t *testing.T) {
	t.Parallel()
	bin := program(t)
	t.Run("Ctrl-C", func(t *testing.T) {
		t.Parallel()
		dir := temporary(t)
		p := startProcess(t, temporaryIn(dir), bin, "demo")
		kit.Eventually(t, "the workers", func() bool { return len(processesWith(t, dir)) == 5 })
		if err := p.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		p.result(t).want(t, 130, "interrupted")
		if left := processesWith(t, dir); len(left) > 0 {
			t.Errorf("got %q left, want none", left)
		}
	})
	t.Run("broken pipe", func(t *testing.T) {
		t.Parallel()
		dir := temporary(t)
		p := &process{Cmd: exec.Command(bin, "demo")}
		p.Env = temporaryIn(dir)
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
		t.Parallel()
		dir := t.TempDir() // nobody is left to remove the files
		p := startProcess(t, temporaryIn(dir), bin, "demo")
		kit.Eventually(t, "the workers", func() bool { return len(processesWith(t, dir)) == 5 })
		if err := p.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		p.result(t)
		kit.Eventually(t, "the end of the workers", func() bool { return len(processesWith(t, dir)) == 0 })
	})
}
