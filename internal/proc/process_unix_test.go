// SPDX-License-Identifier: Apache-2.0

//go:build unix

package proc_test

import (
	"bytes"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/internal/proc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// awaitEnd waits until the child has ended.
func awaitEnd(t *testing.T, p *proc.Process) {
	t.Helper()
	select {
	case <-p.Ended():
	case <-time.After(patience):
		t.Fatalf("the child has not ended in %v", patience)
	}
}

// A child that ends by itself is waited for, with what it has said; to kill it then
// is no error.
func TestProcessEnds(t *testing.T) {
	cmd := exec.Command("sh", "-c", "echo said; exit 3")
	var said bytes.Buffer
	cmd.Stdout = &said
	p, err := proc.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, p)
	if code := cmd.ProcessState.ExitCode(); code != 3 || p.Err() == nil {
		t.Errorf("got exit code %d and %v, want 3 and an error", code, p.Err())
	}
	if got := said.String(); got != "said\n" {
		t.Errorf("it said %q, want said", got)
	}
	if err := p.Kill(); err != nil {
		t.Errorf("Kill of what has ended: got %v, want nil", err)
	}
}

// Kill ends a child that takes no notice, and returns when it is gone.
func TestProcessIsKilled(t *testing.T) {
	p, err := proc.Start(exec.Command("sh", "-c", "trap '' TERM INT; while :; do sleep 1; done"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	select {
	case <-p.Ended():
	default:
		t.Error("Kill returned before the child had ended")
	}
}

// A command that can't be started gives an error, and no process.
func TestProcessThatIsNone(t *testing.T) {
	if p, err := proc.Start(exec.Command("./no-such-program")); err == nil || p != nil {
		t.Errorf("got %v, %v; want an error", p, err)
	}
}
