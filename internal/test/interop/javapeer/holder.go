// SPDX-License-Identifier: Apache-2.0

package javapeer

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/proc"
)

// held is what a holder says as soon as it has its key.
const held = "held"

// StartHolder starts this program once more, with a variable of the environment that
// tells it to be a holder in Go, and waits until that calls Hold. It ends with the
// test, or when kill ends it as kill -9 does.
func StartHolder(t *testing.T, variable, value string) (kill func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), variable+"="+value)
	cmd.Stderr = os.Stderr
	output, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = output.Close() }() // it says nothing else
	cmd.Stdout = theirs
	process, err := proc.Start(cmd)
	_ = theirs.Close() // the process has its own
	if err != nil {
		t.Fatal(err)
	}
	kill = func() { _ = process.Kill() } // fails only if it just went
	t.Cleanup(kill)
	if err := output.SetReadDeadline(time.Now().Add(Patience)); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(output).ReadString('\n'); line != held+"\n" {
		t.Fatalf("the holder in Go says %q, %v; want that it holds the key", line, err)
	}
	return kill
}

// Hold is the end of a holder's part: it says that it has the key, and keeps it until
// it is killed, or nobody can be there any more who would.
func Hold() {
	fmt.Println(held)
	time.Sleep(Patience)
	os.Exit(0)
}
