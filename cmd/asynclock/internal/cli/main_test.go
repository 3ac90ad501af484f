// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/cmd/asynclock/internal/cli"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
)

// TestMain makes this test binary, when its first argument is no flag, what that says: what
// the program runs, or the program itself.
func TestMain(m *testing.M) {
	switch args := os.Args[1:]; {
	case len(args) == 0 || strings.HasPrefix(args[0], "-"):
	case slices.Contains(commands, args[0]):
		os.Exit(command(args))
	default:
		os.Exit(cli.Run(context.Background(), args, os.Stdin, os.Stdout, os.Stderr))
	}
	// Or each process that a test starts takes a second to end under -race.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	kit.InParallel(16)
	teatest := goleak.IgnoreAnyFunction("github.com/charmbracelet/x/exp/teatest/v2.NewTestModel.func2") // it waits for a signal
	goleak.VerifyTestMain(m, append(redistest.Leftover(), teatest)...)
}

// patience is how long a test waits for something that takes no time.
const patience = time.Minute

// brief is a TTL, or a maximum hold, for leases that have to be lost. A request is waited for
// for a quarter of it, which a busy machine keeps to.
const brief = "3s"

// program returns this binary.
func program(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A place is where commands find their server.
type place struct{ url string }

// A redisPlace is a server of one test's own.
type redisPlace struct {
	place
	*miniredis.Miniredis
}

// startRedis starts a server on which time passes.
func startRedis(t *testing.T) redisPlace {
	t.Helper()
	mini := miniredis.RunT(t)
	mini.ClockTTL(true)
	mini.Server().SetPreHook(func(c *server.Peer, command string, _ ...string) bool { return standalone(c, command) })
	return redisPlace{place{"redis://" + mini.Addr()}, mini}
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

// run runs the command in this process, with a server only if args name one.
func run(t *testing.T, args ...string) result {
	t.Helper()
	return runWith(t.Context(), strings.NewReader(""), args...)
}

func runWith(ctx context.Context, stdin io.Reader, args ...string) result {
	var stdout, stderr buffer
	code := cli.Run(ctx, args, stdin, &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

// run runs the command in this process.
func (p place) run(t *testing.T, args ...string) result {
	t.Helper()
	return p.runWith(t.Context(), strings.NewReader(""), args...)
}

func (p place) runWith(ctx context.Context, stdin io.Reader, args ...string) result {
	return runWith(ctx, stdin, append([]string{"--redis", p.url}, args...)...)
}

// env is the environment of processes that are to find the server there.
func (p place) env() []string { return append(os.Environ(), "ASYNCLOCK_REDIS_URL="+p.url) }

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
