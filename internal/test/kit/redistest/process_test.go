// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
)

func TestAServerThatDoesNotStartSaysWhy(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "socket")
	_, err := Start(t, "unix", socket, "sh", "-c", "echo no such directive; exit 1")
	if err == nil || !strings.Contains(err.Error(), "no such directive") {
		t.Errorf("Start: got %v, want what the server said", err)
	}
}

func TestAServerIsGoneWhenKilled(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // in its place
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	p, err := Start(t, "tcp", listener.Addr().String(), "sleep", "1000")
	if err != nil {
		t.Fatal(err)
	}
	p.Kill()
	p.Kill() // as at the end of the test
	select {
	case <-p.child.Ended():
	default:
		t.Error("Kill: got a process that nobody waited for, want it gone")
	}
}
