// SPDX-License-Identifier: Apache-2.0

// Package javapeer lets tests play against lock registries of Java. A Peer is one of
// them, which does what it is told, line by line, in a process that hosts many: to
// start one for each test took most of the tests' time. The tests of a program have
// Shared processes; who kills one starts it for himself. Only the tests in interop
// import this.
//
// How a process is made and killed is in process.go, how processes are shared in
// shared.go, how a peer is spoken to in peer.go; holder.go is for the other way round,
// a process in Go whose key Java waits for when it is killed.
//
// The other half is in the directory java, LineProtocol.java, and says what a line
// is. It is compiled into each of the Maven projects in interop, whose Peer.java says
// what may be asked for there. go run ./internal/test/testenv builds them.
package javapeer

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/proc"
)

// Patience is how long a process may take to come up, and a peer for each answer, on a
// machine that is busy.
const Patience = 100 * time.Second

// Zone is the zone of time that a JVM is in, unless its options say otherwise: the same
// on every machine, since some releases are wrong for one hour a year where clocks are
// turned back.
const Zone = "UTC"

// A Process is a JVM that hosts peers.
type Process struct {
	child  *proc.Process
	input  io.Writer
	errors bytes.Buffer  // to be read when ended is closed
	ended  chan struct{} // closed when the process is gone and its last line was read

	mu      sync.Mutex
	pending map[string]chan string // by the id of a command
	last    int                    // of the ids given out
}

// Start starts a process of the test's own, of a program that was built into a jar,
// with options of the JVM. It ends with the test.
func Start(t *testing.T, jar string, options ...string) *Process {
	t.Helper()
	p, err := start(program(jar, options))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func program(jar string, options []string) *exec.Cmd {
	return exec.Command("java", slices.Concat([]string{
		"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", // several run at once, and briefly
		"-Dfile.encoding=UTF-8", "-Duser.timezone=" + Zone,
	}, options, []string{"-jar", jar})...)
}

// start returns when the process can be spoken to.
func start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{ended: make(chan struct{}), pending: make(map[string]chan string)}
	cmd.Stderr = &p.errors
	input, err := cmd.StdinPipe() // closed when the process has ended
	if err != nil {
		return nil, err
	}
	p.input = input
	output, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = theirs
	ready := p.expect("ready")
	p.child, err = proc.Start(cmd)
	_ = theirs.Close() // the process has its own, and output ends with that
	if err != nil {
		_ = output.Close()
		return nil, err
	}
	go p.listen(output) // ends with the process, which Kill waits for
	select {
	case <-ready:
		return p, nil
	case <-p.ended:
		return nil, fmt.Errorf("the Java process ended at once: %s", p.errors.String())
	case <-time.After(Patience):
		p.Kill()
		return nil, fmt.Errorf("the Java process was not ready in %v: %s", Patience, p.errors.String())
	}
}

// Kill ends the process as kill -9 does, and waits until it is gone.
func (p *Process) Kill() {
	_ = p.child.Kill() // fails only if it just went
	<-p.ended
}

// expect returns where the answer to the command of that id will come.
func (p *Process) expect(id string) <-chan string {
	answer := make(chan string, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending[id] = answer
	return answer
}

// next is an id that was not given out before.
func (p *Process) next() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	return strconv.Itoa(p.last)
}

// listen passes each line on to whoever waits for its first word.
func (p *Process) listen(output io.ReadCloser) {
	defer close(p.ended)
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		id, rest, _ := strings.Cut(lines.Text(), " ")
		p.mu.Lock()
		answer := p.pending[id]
		delete(p.pending, id)
		p.mu.Unlock()
		if answer != nil {
			answer <- rest
		}
	}
	_ = output.Close()
	<-p.child.Ended()
}
