// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// status returns a field of what Linux says about a process, or nothing.
func status(pid, field string) string {
	text, _ := os.ReadFile(filepath.Join("/proc", pid, "status"))
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// guardOf returns the guard that a process has started, once it ignores all of the
// signals.
func guardOf(t *testing.T, parent int, signals ...syscall.Signal) (pid int) {
	t.Helper()
	kit.Eventually(t, "a guard", func() bool {
		lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range lines {
			line, _ := os.ReadFile(path) // the process may just have ended
			if id := filepath.Base(filepath.Dir(path)); strings.HasSuffix(string(line), "\x00run-guard\x00") &&
				status(id, "PPid") == strconv.Itoa(parent) {
				pid, _ = strconv.Atoi(id)
			}
		}
		var ignored uint64
		_, _ = fmt.Sscanf(status(strconv.Itoa(pid), "SigIgn"), "%x", &ignored)
		for _, s := range signals {
			if ignored&(1<<(s-1)) == 0 {
				return false
			}
		}
		return pid != 0
	})
	return pid
}

// TestRunKilledWhenItsGuardHadAWarning: what is sent to all processes of a service,
// say, before they are killed.
func TestRunKilledWhenItsGuardHadAWarning(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	file := filepath.Join(t.TempDir(), "file")
	p := redis.startProcess(t, bin, "run", "k", "--", bin, "parent", file)
	pid := exists(t, file)
	warnings := []syscall.Signal{
		syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP,
	}
	guard := guardOf(t, p.Process.Pid, warnings...)
	for _, s := range warnings {
		if err := syscall.Kill(guard, s); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.result(t)
	kit.Eventually(t, "the end of what the command started", func() bool { return !alive(pid) })
	kit.Eventually(t, "the end of the guard", func() bool { return !alive(strconv.Itoa(guard)) })
}

// TestRunDismissesItsGuard: none is left behind, and none is needed for a command to
// be ended.
func TestRunDismissesItsGuard(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	file := filepath.Join(t.TempDir(), "file")
	p := redis.startProcess(t, bin, "run", "k", "--", bin, "sleep", file)
	exists(t, file)
	guard := guardOf(t, p.Process.Pid, syscall.SIGTERM)
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.result(t).want(t, 128+15)
	if alive(strconv.Itoa(guard)) {
		t.Error("the guard outlived run")
	}

	file = filepath.Join(t.TempDir(), "file")
	p = redis.startProcess(t, bin, "run", "k", "--", bin, "sleep", file)
	exists(t, file)
	if err := syscall.Kill(guardOf(t, p.Process.Pid, syscall.SIGTERM), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	redis.run(t, "unlock", "--force", "--token", "0", "k").want(t, 0)
	p.result(t).want(t, 79, "ending the command")
}
