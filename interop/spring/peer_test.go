// SPDX-License-Identifier: Apache-2.0

package spring

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/store/springredis"
)

// A peer is a process with a lock registry of Java in it; Peer.java says how it is
// spoken to.
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

// startup is how long a JVM may take to come up on a busy machine.
const startup = time.Minute

// A setup is how a RedisLockRegistry is made.
type setup struct {
	line     string // of releases: a directory below ASYNCLOCK_SPRING
	registry string
	mode     springredis.LockType
	ttl      time.Duration
	renew    bool     // by itself
	options  []string // of the JVM
}

// startPeer starts a process with a RedisLockRegistry, which ends with the test.
func startPeer(t *testing.T, s setup) *peer {
	t.Helper()
	host, port, err := net.SplitHostPort(serverOption(t).InitAddress[0])
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"redis", host, port, s.registry, s.mode.String(), fmt.Sprint(s.ttl.Milliseconds())}
	if s.renew {
		args = append(args, "renew")
	}
	return launch(t, s.line, s.options, args...).warm()
}

// warm has the peer lock a key for the first time, which takes a JVM long.
func (p *peer) warm() *peer {
	p.t.Helper()
	p.do("lock", "the first one")
	p.do("unlock", "the first one")
	return p
}

// launch starts a process, of a line of releases, with options of the JVM and
// arguments of Peer.java. It ends with the test.
func launch(t *testing.T, line string, options []string, arguments ...string) *peer {
	t.Helper()
	args := []string{
		"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", // several run at once, and briefly
		"-Dfile.encoding=UTF-8",
	}
	args = append(args, options...)
	args = append(args, "-jar", filepath.Join(needed(t, "ASYNCLOCK_SPRING"), "spring-"+line, "peer.jar"))
	for _, a := range arguments {
		args = append(args, url.QueryEscape(a))
	}
	p := &peer{t: t, cmd: exec.Command("java", args...), ended: make(chan struct{}), pending: make(map[string]chan string)}
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
	case <-time.After(startup):
		t.Fatalf("the Java peer was not ready in %v", startup)
	}
	return p
}

// needed returns what a variable of the environment says. Without it the test is
// skipped, or fails where nothing may be left out.
func needed(t *testing.T, variable string) string {
	t.Helper()
	value := os.Getenv(variable)
	if value == "" {
		what := "left out: " + variable + " is not set; go run ./internal/testenv ./interop/spring builds and starts what it takes, with Java and Maven"
		if os.Getenv("ASYNCLOCK_REQUIRE") == "1" {
			t.Fatal(what)
		}
		t.Skip(what)
	}
	return value
}

func serverOption(t *testing.T) rueidis.ClientOption {
	t.Helper()
	option, err := rueidis.ParseURL(needed(t, "ASYNCLOCK_REDIS_URL"))
	if err != nil {
		t.Fatal(err)
	}
	return option
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
	_ = p.cmd.Process.Kill()
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
			return rest, ""
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

// do gives a command and waits for its success.
func (p *peer) do(verb, key string, args ...any) string {
	p.t.Helper()
	value, exception := p.await(p.begin("main", verb, key, args...))
	if exception != "" {
		p.t.Fatalf("%s of %q in Java: got %s, want success", verb, key, value)
	}
	return value
}

// fails gives a command and returns the class of the exception that it throws.
func (p *peer) fails(verb, key string) string {
	p.t.Helper()
	_, exception := p.await(p.begin("main", verb, key))
	return exception
}
