// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"bytes"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/proc"
	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// A Process is a server of one test, which ends with it, and on Linux with the test's
// process if that is killed.
type Process struct {
	child *proc.Process
}

// startLimit is how long a server may take until it listens.
const startLimit = 20 * time.Second

// Start starts a program, such as redis-server, and waits until somebody listens
// at the address. An error says what the program said before it ended: as a rule
// that it does not know some option. If there is no such program, the test is
// skipped, or fails where servers are required.
func Start(t testing.TB, network, address, program string, args ...string) (*Process, error) {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		kit.Skip(t, program+" is not installed: not tested against a server of the test's own")
	}
	var said bytes.Buffer // to be read when it has ended
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = &said, &said
	child, err := proc.Start(cmd)
	if err != nil {
		return nil, err
	}
	p := &Process{child: child}
	t.Cleanup(p.Kill)

	timeout := time.After(startLimit)
	for {
		if conn, err := (&net.Dialer{}).DialContext(t.Context(), network, address); err == nil {
			return p, conn.Close()
		}
		select {
		case <-child.Ended():
			return nil, fmt.Errorf("%s %s ended: %s", program, strings.Join(args, " "), bytes.TrimSpace(said.Bytes()))
		case <-timeout:
			return nil, fmt.Errorf("%s does not listen at %s after %v", program, address, startLimit)
		case <-time.After(time.Millisecond):
		}
	}
}

// Kill ends the process as a power cut would, and waits until it is gone.
func (p *Process) Kill() {
	_ = p.child.Kill() // it is ours, so it can't be refused
}
