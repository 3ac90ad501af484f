// SPDX-License-Identifier: Apache-2.0

package proc_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/internal/proc"
)

// A child ends with a process that is killed, and so could not end it.
func TestAChildDoesNotOutliveItsParent(t *testing.T) {
	const variable = "CHILDPROC_PARENT" // makes this test the parent, which says who its child is
	if os.Getenv(variable) != "" {
		p, err := proc.Start(exec.Command("sleep", "100"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(p.Child.Pid)
		<-p.Ended()
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), variable+"=1")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }() // it was killed
	defer func() { _ = cmd.Process.Kill() }()
	child, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child = strings.TrimSpace(child)
	if got := state(t, child); got == "Z" {
		t.Fatalf("the parent says %q, want a child that runs", child)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, child, "Z")
}
