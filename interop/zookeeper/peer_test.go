// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/childproc"
)

// A peer is a Java process; Peer.java says what is in it and how it is spoken to.
type peer struct {
	t      *testing.T
	cmd    *exec.Cmd
	input  io.WriteCloser
	errors bytes.Buffer // to be read when the process has ended
	ended  chan struct{}

	mu      sync.Mutex
	pending map[string]chan string // by the id of a command
	last    int
}

// startPeer starts a process, which ends with the test.
func startPeer(t *testing.T, root string, session time.Duration) *peer {
	t.Helper()
	jar := filepath.Join(needed(t, "ASYNCLOCK_ZOOKEEPER_PEER"), "peer.jar")
	p := &peer{
		t: t, ended: make(chan struct{}), pending: make(map[string]chan string),
		cmd: exec.Command("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8",
			"-jar", jar, needed(t, "ASYNCLOCK_ZOOKEEPER"), url.QueryEscape(root), fmt.Sprint(session.Milliseconds())),
	}
	childproc.Prepare(p.cmd)
	p.cmd.Stderr = &p.errors
	var err error
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	ready := p.expect("ready")
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.listen(output) // ends with the process, which kill waits for
	t.Cleanup(p.kill)
	select {
	case <-ready:
	case <-p.ended:
		t.Fatalf("the Java peer ended at once: %s", p.errors.String())
	case <-time.After(patience):
		t.Fatalf("the Java peer was not ready in %v", patience)
	}
	return p
}

// needed returns what a variable of the environment says. Without it the test is
// skipped, or fails where nothing may be left out.
func needed(t *testing.T, variable string) string {
	t.Helper()
	value := os.Getenv(variable)
	if value == "" {
		what := "left out: " + variable + " is not set; go run ./internal/testenv ./interop/zookeeper builds and starts what it takes, with Java and Maven"
		if os.Getenv("ASYNCLOCK_REQUIRE") == "1" {
			t.Fatal(what)
		}
		t.Skip(what)
	}
	return value
}

// listen passes each line on to whoever waits for its first word.
func (p *peer) listen(output io.Reader) {
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
	_ = p.cmd.Wait() // how it ended is of no interest: as a rule it was killed
}

func (p *peer) expect(id string) <-chan string {
	answer := make(chan string, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending[id] = answer
	return answer
}

// kill ends the process as kill -9 does.
func (p *peer) kill() {
	_ = childproc.Kill(p.cmd.Process) // it may have ended
	<-p.ended
}

// begin gives the peer a command, for one of its threads, and returns where the
// answer will come.
func (p *peer) begin(thread, verb, key string, args ...any) <-chan string {
	p.t.Helper()
	p.mu.Lock()
	p.last++
	id := fmt.Sprint(p.last)
	p.mu.Unlock()
	answer := p.expect(id)
	line := fmt.Sprintf("%s %s %s %s", id, thread, verb, url.QueryEscape(key))
	for _, a := range args {
		line += " " + url.QueryEscape(fmt.Sprint(a))
	}
	if _, err := fmt.Fprintln(p.input, line); err != nil {
		p.t.Fatalf("the Java peer does not listen: %v", err)
	}
	return answer
}

// await waits for an answer: the value, or the class of the exception.
func (p *peer) await(answer <-chan string) (value, exception string) {
	p.t.Helper()
	select {
	case text := <-answer:
		verdict, rest, _ := strings.Cut(text, " ")
		if verdict == "ok" {
			value, err := url.QueryUnescape(rest)
			if err != nil {
				p.t.Fatal(err)
			}
			return value, ""
		}
		exception, _, _ = strings.Cut(rest, " ")
		return rest, exception
	case <-p.ended:
		p.t.Fatalf("the Java peer has ended: %s", p.errors.String())
	case <-time.After(patience):
		p.t.Fatalf("the Java peer did not answer in %v", patience)
	}
	panic("unreachable")
}

// succeeds waits for an answer that is no exception.
func (p *peer) succeeds(answer <-chan string) string {
	p.t.Helper()
	value, exception := p.await(answer)
	if exception != "" {
		p.t.Fatalf("in Java: got %s, want success", value)
	}
	return value
}

// do gives a command and waits for its success.
func (p *peer) do(verb, key string, args ...any) string {
	p.t.Helper()
	return p.succeeds(p.begin("main", verb, key, args...))
}
