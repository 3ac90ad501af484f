// SPDX-License-Identifier: Apache-2.0

//go:build unix

package childproc_test

import (
	"bufio"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/childproc"
)

const patience = 10 * time.Second

// start starts a shell and returns it once it has printed its first line.
func start(t *testing.T, script string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	childproc.Prepare(cmd)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = childproc.Kill(cmd.Process) })
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// until waits for a condition that other processes bring about.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("gave up waiting: %s", what)
		}
	}
}

// TestGroup: signals reach what the child started, also after the child itself
// has ended.
func TestGroup(t *testing.T) {
	cmd := start(t, `trap "exit 3" TERM; sleep 100 & echo; wait; exit 4`)
	if !childproc.Alive(cmd.Process) {
		t.Error("got a dead group, want it alive")
	}
	if err := childproc.Terminate(cmd.Process); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 3 {
		t.Errorf("got exit code %d, want 3", code)
	}
	until(t, "the end of the group", func() bool { return !childproc.Alive(cmd.Process) })
	if err := childproc.Kill(cmd.Process); err != nil {
		t.Errorf("got %v for a group that is gone, want nil", err)
	}
}

func TestKillReachesTheGrandchild(t *testing.T) {
	cmd := start(t, `sh -c 'trap "" TERM; echo; while :; do sleep 1; done' & exec sleep 100`)
	if err := childproc.Terminate(cmd.Process); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if !childproc.Alive(cmd.Process) {
		t.Error("got a dead group, want the one that ignores the signal alive")
	}
	if err := childproc.Kill(cmd.Process); err != nil {
		t.Fatal(err)
	}
	until(t, "the end of the group", func() bool { return !childproc.Alive(cmd.Process) })
}

func TestPause(t *testing.T) {
	cmd := start(t, "echo; exec sleep 100")
	state := func() string {
		out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(cmd.Process.Pid)).Output()
		if err != nil {
			t.Skip("no usable ps: ", err)
		}
		return string(out)
	}
	if err := childproc.Pause(cmd.Process); err != nil {
		t.Fatal(err)
	}
	until(t, "the pause", func() bool { return strings.HasPrefix(state(), "T") })
	if err := childproc.Resume(cmd.Process); err != nil {
		t.Fatal(err)
	}
	until(t, "the end of the pause", func() bool { return !strings.HasPrefix(state(), "T") })
}
