// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cli_test

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// A piped process is the program with pipes for stdin and stdout.
type piped struct {
	*exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	closer io.Closer // of stdout
	stderr buffer
}

func (p place) piped(t *testing.T, args ...string) *piped {
	t.Helper()
	c := &piped{Cmd: exec.Command(program(t), args...)}
	c.Env, c.Stderr = p.env(), &c.stderr
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.stdin, c.stdout, c.closer = stdin, bufio.NewReader(stdout), stdout
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	limit := time.AfterFunc(patience, func() { _ = c.Process.Kill() })
	t.Cleanup(func() {
		limit.Stop()
		_ = c.Process.Kill() // unless it has ended
	})
	return c
}

// line waits for a line.
func (c *piped) line(t *testing.T) string {
	t.Helper()
	line, err := c.stdout.ReadString('\n')
	if err != nil {
		t.Fatalf("got %q, %v; want a line; stderr: %s", line, err, c.stderr.String())
	}
	return line
}

func (c *piped) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := c.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// result waits for the end.
func (c *piped) result() result {
	_ = c.Wait()
	return result{c.ProcessState.ExitCode(), "", c.stderr.String()}
}

// TestFollowingEndsByASignal, without a word, as tail -f.
func TestFollowingEndsByASignal(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	redis.hold(t, "k")
	for s, args := range map[syscall.Signal][]string{syscall.SIGINT: {"watch"}, syscall.SIGTERM: {"note", "k", "--follow"}} {
		c := redis.piped(t, args...)
		c.line(t)
		c.signal(t, syscall.SIGUSR1) // means nothing
		c.signal(t, s)
		c.result().want(t, 128+int(s))
	}
}

// TestFollowingEndsWithItsReader, although nothing happens that could be printed.
func TestFollowingEndsWithItsReader(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	redis.hold(t, "k")
	c := redis.piped(t, "watch")
	c.line(t)
	c.closer.Close()
	c.result().want(t, 128+13)
}

// TestHoldUntilASignal: it unlocks and exits with 0. One that comes while it waits for the key ends it otherwise.
func TestHoldUntilASignal(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	c := redis.piped(t, "hold", "k", "-n")
	c.line(t)
	c.signal(t, syscall.SIGUSR1) // means nothing
	c.signal(t, syscall.SIGTSTP) // a stopped process would lose the key
	c.signal(t, syscall.SIGHUP)
	c.result().want(t, 0)
	locks := redis.newClient(t)
	redis.hold(t, "k")
	c = redis.piped(t, "hold", "k", "-q")
	kit.Eventually(t, "a waiter", func() bool {
		info, err := locks.Inspect(t.Context(), "k")
		return err == nil && info.Waiters == 1
	})
	c.signal(t, syscall.SIGTERM)
	c.result().want(t, 128+15, `terminated while waiting for "k"`)
}

// TestWaitEndsByASignal: like run, it says what it waited for.
func TestWaitEndsByASignal(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	var holders sync.Map // connections of who has the key, who may ask again
	var held, asked atomic.Bool
	redis.Server().SetPreHook(func(c *server.Peer, command string, _ ...string) bool {
		if !held.Load() {
			holders.Store(c, nil)
		} else if _, isHolder := holders.Load(c); !isHolder && strings.HasPrefix(command, "EVAL") {
			asked.Store(true)
		}
		return standalone(c, command)
	})
	redis.hold(t, "k")
	held.Store(true)
	c := redis.piped(t, "wait", "k")
	kit.Eventually(t, "a look at the key", asked.Load)
	c.signal(t, syscall.SIGINT)
	c.result().want(t, 128+2, `interrupt while waiting for "k"`)
}

// TestBenchEndsByASignal, and has given its keys back.
func TestBenchEndsByASignal(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	p := redis.startProcess(t, program(t), "bench", "--for", "1m")
	kit.Eventually(t, "alone", func() bool { return len(redis.Keys()) > 0 })
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.result(t).want(t, 128+15, "interrupted")
	noKeys(t, redis.place)
}
