// SPDX-License-Identifier: Apache-2.0

package javapeer

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// Tests share the process for a jar and options, each with a peer of its own, until all
// tests are over.
func TestShared(t *testing.T) {
	fakeJava(t, "peer")
	var shared Shared
	t.Cleanup(shared.stop) // if the test fails
	one := shared.Process(t, "peer.jar")
	if shared.Process(t, "peer.jar") != one {
		t.Error("for the same jar: got two processes, want one")
	}
	other := shared.Process(t, "peer.jar", "-Duser.timezone=Asia/Kolkata")
	if other == one {
		t.Error("for other options: got the same process, want another")
	}
	first, second := one.Open(t).Do("handle", "key"), one.Open(t).Do("handle", "key")
	if first == second {
		t.Errorf("two peers of a process: got both under the handle %s, want one for each", first)
	}
	shared.stop()
	for _, p := range []*Process{one, other} {
		select {
		case <-p.ended:
		default:
			t.Error("a process is still there after the stop")
		}
	}
}

// Each test that requests a process is told if it can't be started.
func TestNoProcess(t *testing.T) {
	fakeJava(t, "nothing")
	var shared Shared
	for range 2 {
		if _, err := shared.starter("peer.jar", nil)(); err == nil || !strings.Contains(err.Error(), "no such part") {
			t.Errorf("a program that ends at once: got %v, want what it said", err)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := shared.starter("other.jar", nil)(); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("without Java: got %v, want ErrNotFound", err)
	}
	shared.stop()
}
