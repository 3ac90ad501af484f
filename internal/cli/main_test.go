// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/internal/cli"
	"github.com/asynclock/asynclock-go/internal/redistest"
)

// roleVariable makes this test binary do something else than test.
const roleVariable = "ASYNCLOCK_TEST_ROLE"

// The roles.
const (
	beAsynclock = "asynclock" // the program, in a process of its own
	beWorker    = "worker"    // the program, started by itself
	beCommand   = "command"   // what the program runs
)

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if len(os.Args) == 2 && os.Args[1] == "run-guard" { // started by run, whatever plays that
		role = beWorker
	}
	switch role {
	case beAsynclock:
		if err := os.Setenv(roleVariable, beCommand); err != nil {
			panic(err)
		}
		fallthrough
	case beWorker:
		os.Exit(cli.Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	case beCommand:
		os.Exit(command(os.Args[1:]))
	}
	goleak.VerifyTestMain(m, redistest.Leftover()...)
}

// patience is how long a test waits for something that takes no time.
const patience = 20 * time.Second

// program returns this binary, which plays role in the processes that the test
// starts from now on.
func program(t *testing.T, role string) string {
	t.Helper()
	t.Setenv(roleVariable, role)
	t.Setenv("GORACE", "atexit_sleep_ms=0") // or each process takes a second to end under -race
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// startRedis starts a server on which time passes, and makes it the one that
// the command finds in its environment.
func startRedis(t *testing.T) *miniredis.Miniredis {
	t.Helper()
	mini := miniredis.RunT(t)
	mini.ClockTTL(true)
	mini.Server().SetPreHook(func(c *server.Peer, command string, _ ...string) bool { return standalone(c, command) })
	t.Setenv("ASYNCLOCK_REDIS_URL", "redis://"+mini.Addr())
	return mini
}

// standalone lets miniredis answer as a standalone Redis does when it is asked
// for a Cluster; it would pass for one without sharded pub-sub.
func standalone(c *server.Peer, command string) (answered bool) {
	if command == "CLUSTER" {
		c.WriteError("ERR This instance has cluster support disabled")
	}
	return command == "CLUSTER"
}

// A buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}

// A result is what a command left.
type result struct {
	code           int
	stdout, stderr string
}

// run runs the command in this process.
func run(t *testing.T, args ...string) result {
	t.Helper()
	return runWith(t.Context(), strings.NewReader(""), args...)
}

func runWith(ctx context.Context, stdin io.Reader, args ...string) result {
	var stdout, stderr buffer
	code := cli.Run(ctx, args, stdin, &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

// want checks the exit code, and that stderr contains each text.
func (r result) want(t *testing.T, code int, stderr ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("got exit code %d, want %d; stderr: %s", r.code, code, r.stderr)
	}
	for _, text := range stderr {
		if !strings.Contains(r.stderr, text) {
			t.Errorf("got stderr %q, want it to contain %q", r.stderr, text)
		}
	}
	if len(stderr) == 0 && r.stderr != "" {
		t.Errorf("got stderr %q, want none", r.stderr)
	}
}

// until waits for a condition that other processes bring about.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("gave up waiting: %s", what)
		}
	}
}
