// SPDX-License-Identifier: Apache-2.0

//go:build unix

package proc_test

import (
	"bufio"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/proc"
	"github.com/asynclock/asynclock-go/internal/test/kit"
)

const patience = 10 * time.Second

// start starts a shell and returns it, with the first line that it printed.
func start(t *testing.T, script string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	proc.Prepare(cmd)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proc.Kill(cmd.Process) })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return cmd, strings.TrimSpace(line)
}

// state returns the letter that ps has for a process, or Z if it is gone.
func state(t *testing.T, pid string) string {
	t.Helper()
	out, err := exec.Command("ps", "-o", "stat=", "-p", pid).Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Skip("no usable ps: ", err)
	}
	return (string(out) + "Z")[:1]
}

// until waits for a process to be in one of the states.
func until(t *testing.T, pid, states string) {
	t.Helper()
	kit.Eventually(t, "process "+pid+" in one of the states "+states, func() bool {
		return strings.Contains(states, state(t, pid))
	})
}

// TestGroup: signals reach what the child started.
func TestGroup(t *testing.T) {
	cmd, grandchild := start(t, `trap "exit 3" TERM; sh -c "echo \$\$; exec sleep 100" & wait; exit 4`)
	if !proc.Alive(cmd.Process) {
		t.Error("got a dead group, want it alive")
	}
	if err := proc.Terminate(cmd.Process); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 3 {
		t.Errorf("got exit code %d, want 3", code)
	}
	until(t, grandchild, "Z")
}

// TestGroupWithoutItsLeader: signals reach what the child started, also after
// the child itself has ended.
func TestGroupWithoutItsLeader(t *testing.T) {
	cmd, grandchild := start(t, `sh -c 'trap "" TERM; echo $$; while :; do sleep 1; done' & exec sleep 100`)
	if err := proc.Terminate(cmd.Process); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if !proc.Alive(cmd.Process) {
		t.Error("got a dead group, want the one that ignores the signal alive")
	}
	if err := proc.Kill(cmd.Process); err != nil {
		t.Fatal(err)
	}
	until(t, grandchild, "Z")
}

func TestGroupThatIsGone(t *testing.T) {
	cmd, _ := start(t, "echo")
	_ = cmd.Wait()
	if proc.Alive(cmd.Process) {
		t.Error("got a living group, want it dead")
	}
	if err := proc.Kill(cmd.Process); err != nil {
		t.Errorf("got %v, want nil", err)
	}
}

func TestPause(t *testing.T) {
	cmd, _ := start(t, "echo; exec sleep 100")
	pid := strconv.Itoa(cmd.Process.Pid)
	if err := proc.Pause(cmd.Process); err != nil {
		t.Fatal(err)
	}
	until(t, pid, "T")
	if err := proc.Resume(cmd.Process); err != nil {
		t.Fatal(err)
	}
	until(t, pid, "SRI")
}
