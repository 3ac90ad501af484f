// SPDX-License-Identifier: Apache-2.0

// Package javapeer lets tests play against lock registries of Java: each in a
// process of its own, which does what it is told, line by line. Only the tests in
// interop import it. How a Peer is made and killed is in peer.go, how it is spoken to
// in command.go; holder.go is for the other way round, a process in Go whose key Java
// waits for when it is killed.
//
// Its other half is in the directory java, LineProtocol.java, and says what a line
// is. It is compiled into each of the Maven projects in interop, whose Peer.java says
// what may be asked for there. go run ./internal/testenv builds them.
package javapeer

import (
	"bufio"
	"bytes"
	"io"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/childproc"
)

// Patience is how long a peer may take to come up, and for each answer, on a machine
// that is busy.
const Patience = 100 * time.Second

// A Peer is a process with locks of Java in it.
type Peer struct {
	t       *testing.T
	process *childproc.Process
	input   io.Writer
	errors  bytes.Buffer  // to be read when ended is closed
	ended   chan struct{} // closed when the process is gone and its last line was read

	mu      sync.Mutex
	pending map[string]chan string // by the id of a command
	last    int
}

// Start starts a peer that was built into a jar, with options of the JVM and arguments
// of its own, and waits until it can be spoken to. It ends with the test.
func Start(t *testing.T, jar string, options []string, arguments ...string) *Peer {
	t.Helper()
	words := []string{
		"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", // several run at once, and briefly
		"-Dfile.encoding=UTF-8",
	}
	words = append(words, options...)
	words = append(words, "-jar", jar)
	for _, a := range arguments {
		words = append(words, url.QueryEscape(a))
	}
	return start(t, exec.Command("java", words...))
}

func start(t *testing.T, cmd *exec.Cmd) *Peer {
	t.Helper()
	p := &Peer{t: t, ended: make(chan struct{}), pending: make(map[string]chan string)}
	cmd.Stderr = &p.errors
	input, err := cmd.StdinPipe() // closed when the process has ended
	if err != nil {
		t.Fatal(err)
	}
	p.input = input
	output, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = theirs
	ready := p.expect("ready")
	p.process, err = childproc.Start(cmd)
	_ = theirs.Close() // the process has its own, and output ends with that
	if err != nil {
		_ = output.Close()
		t.Fatal(err)
	}
	go p.listen(output) // ends with the process, which Kill waits for
	t.Cleanup(p.Kill)
	select {
	case <-ready:
	case <-p.ended:
		t.Fatalf("the Java peer ended at once: %s", p.errors.String())
	case <-time.After(Patience):
		t.Fatalf("the Java peer was not ready in %v", Patience)
	}
	return p
}

// Kill ends the process as kill -9 does, and waits until it is gone.
func (p *Peer) Kill() {
	_ = p.process.Kill() // fails only if it just went
	<-p.ended
}

// listen passes each line on to whoever waits for its first word.
func (p *Peer) listen(output io.ReadCloser) {
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
	<-p.process.Ended()
}
