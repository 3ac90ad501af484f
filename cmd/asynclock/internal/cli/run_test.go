// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// background runs the command in this process while the test goes on.
func (p place) background(ctx context.Context, args ...string) <-chan result {
	done := make(chan result, 1)
	go func() { done <- p.runWith(ctx, strings.NewReader(""), args...) }()
	return done
}

func finished(t *testing.T, done <-chan result) result {
	t.Helper()
	select {
	case r := <-done:
		return r
	case <-time.After(patience):
		t.Fatal("the command did not end")
		return result{}
	}
}

// exists waits until a command has created its file, and returns what it wrote.
func exists(t *testing.T, path string) string {
	t.Helper()
	var content []byte
	kit.Eventually(t, filepath.Base(path), func() bool {
		var err error
		content, err = os.ReadFile(path)
		return err == nil
	})
	return string(content)
}

func TestRunExitCodes(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	dir := t.TempDir()
	notExecutable := filepath.Join(dir, "data")
	if err := os.WriteFile(notExecutable, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	noProgram := filepath.Join(dir, "broken")
	if err := os.WriteFile(noProgram, []byte("\x00"), 0o700); err != nil {
		t.Fatal(err)
	}
	noInterpreter := filepath.Join(dir, "script")
	if err := os.WriteFile(noInterpreter, []byte("#!/no/such/interpreter\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	redis.run(t, "run", "k", "--", bin, "exit", "0").want(t, 0)
	redis.run(t, "run", "k", "--", bin, "exit", "64", "--help", "--no-such-flag").want(t, 64) // what follows it is not ours
	redis.run(t, "run", "k", "--", bin, "exit", "255").want(t, 255)
	redis.run(t, "run", "k", "--", "no-such-command-anywhere").want(t, 127, "command not found")
	redis.run(t, "run", "k", "--", filepath.Join(dir, "nothing")).want(t, 127, "command not found")
	redis.run(t, "run", "k", "--", dir).want(t, 126, "asynclock: ")
	if runtime.GOOS != "windows" {
		redis.run(t, "run", "k", "--", bin, "kill-self").want(t, 128+9)
		redis.run(t, "run", "k", "--", notExecutable).want(t, 126, "permission denied")
		redis.run(t, "run", "k", "--", noProgram).want(t, 126, "exec format error")
		redis.run(t, "run", "k", "--", noInterpreter).want(t, 127, "no such file")
	}
	redis.run(t, "run", "k", "--wait", "0", "--", bin, "exit", "0").want(t, 0) // every one of them unlocked
}

func TestRunGivesTheCommandItsStreamsAndEnvironment(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	got := redis.runWith(t.Context(), strings.NewReader("to and fro"), "run", "k", "--", bin, "copy")
	if want := (result{0, "to and fro", "copied"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	tokens := [2]int64{}
	for i := range tokens {
		got := redis.run(t, "run", "orders/42", "--", bin, "env")
		got.want(t, 0)
		var key string
		if _, err := fmt.Sscan(got.stdout, &key, &tokens[i]); err != nil || key != "orders/42" {
			t.Errorf("got %q, want the key and a token", got.stdout)
		}
	}
	if tokens[0] <= 0 || tokens[1] <= tokens[0] {
		t.Errorf("got tokens %v, want them to rise", tokens)
	}
}

// TestTheCommandGetsNoURL: the password in it is not for the command.
func TestTheCommandGetsNoURL(t *testing.T) {
	redis := startRedis(t)
	t.Setenv("ASYNCLOCK_REDIS_URL", redis.url)
	for _, name := range []string{"run", "elect"} {
		got := run(t, name, name, "--", program(t), "env")
		got.want(t, 0)
		if !strings.HasPrefix(got.stdout, name+" ") || !strings.HasSuffix(got.stdout, ` ""`) {
			t.Errorf("%s: got %q, want the key, the token and no URL", name, got.stdout)
		}
	}
}

func TestRunWhileHeld(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	file := filepath.Join(t.TempDir(), "file")
	lease := redis.hold(t, "k")[0]

	redis.run(t, "run", "k", "--wait", "0", "--", bin, "touch", file).
		want(t, 75, `"k" is held by a test`, fmt.Sprintf("token %d", lease.Token()), "of its TTL left")
	redis.run(t, "run", "k", "-w", "0.5", "--", bin, "touch", file).
		want(t, 124, `no lock on "k" within 500ms`)
	if _, err := os.Stat(file); err == nil {
		t.Fatal("the command ran without the lock")
	}

	waiting := redis.talk(t, "run", "k", "--", bin, "touch", file)
	waiting.stdin.Close()
	says := fmt.Sprintf("asynclock: waiting for \"k\": held by a test (token %d)\n", lease.Token())
	kit.Eventually(t, says, func() bool { return waiting.stderr.String() == says })
	if err := lease.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	finished(t, waiting.done).want(t, 0, says)
	exists(t, file)
}

// TestRunQuietly: nothing is said if another has the lock, and all else is.
func TestRunQuietly(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	redis.hold(t, "k")
	redis.run(t, "run", "k", "--quiet", "--wait", "0", "--", bin, "exit", "0").want(t, 75)
	redis.run(t, "run", "k", "--quiet", "--wait", "2s", "--", bin, "exit", "0").want(t, 124)
	redis.run(t, "run", "free", "-q", "--wait", "0", "--", bin, "exit", "3").want(t, 3)
	place{"redis://127.0.0.1:1"}.run(t, "run", "k", "--quiet", "--wait", "0", "--", bin, "exit", "0").want(t, 69, "store unreachable")
}

// TestRunAsFlock: a number is of seconds, and another code can stand for a conflict, and for nothing else.
func TestRunAsFlock(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	redis.hold(t, "k")
	redis.run(t, "run", "k", "-n", "--", bin, "exit", "0").want(t, 75, "is held by")
	redis.run(t, "run", "k", "--nonblock", "--conflict-exit-code", "0", "--", bin, "exit", "7").want(t, 0, "is held by")
	redis.run(t, "run", "k", "-q", "-n", "-E", "3", "--", bin, "exit", "0").want(t, 3)
	redis.run(t, "run", "k", "-w", "0.5", "-E", "255", "--", bin, "exit", "0").want(t, 255, "within 500ms")
	redis.run(t, "run", "free", "-n", "-E", "3", "--", bin, "exit", "75").want(t, 75)
	place{"redis://127.0.0.1:1"}.run(t, "run", "k", "-n", "-E", "3", "--", bin, "exit", "0").want(t, 69, "store unreachable")
}

// TestRunHoldsWhileTheCommandRuns, and says who it is.
func TestRunHoldsWhileTheCommandRuns(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	file := filepath.Join(t.TempDir(), "file")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	running := redis.background(ctx, "run", "k", "--holder", "the night shift", "--", bin, "sleep", file)
	exists(t, file)
	redis.run(t, "run", "k", "--wait", "0", "--", bin, "exit", "0").want(t, 75, "held by the night shift")
	cancel()
	finished(t, running).want(t, 128+15, "context canceled; ending the command")
}

// Losses. With each, the command is ended and the exit code is 79.

func TestRunUnlockedByForce(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	file := filepath.Join(t.TempDir(), "file")
	running := redis.background(t.Context(), "run", "k", "--", bin, "sleep", file)
	exists(t, file)
	redis.run(t, "unlock", "--force", "--token", "0", "k").want(t, 0)
	finished(t, running).want(t, 79, `"k": lease lost: unlocked by force; ending the command`, "(command: signal: terminated)")
}

func TestRunMaxHold(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	file := filepath.Join(t.TempDir(), "file")
	redis.run(t, "run", "k", "--max-hold", brief, "--", bin, "sleep", file).want(t, 79, "maximum hold reached")
}

func TestRunServerGone(t *testing.T) {
	t.Parallel()
	server := startRedis(t)
	bin := program(t)
	file := filepath.Join(t.TempDir(), "file")
	running := server.background(t.Context(), "run", "k", "--ttl", brief, "--", bin, "sleep", file)
	exists(t, file)
	server.Close()
	finished(t, running).want(t, 79, "renewals failed until the trust deadline: store unreachable", "; ending the command")
}

// TestRunLossIsReportedOverSuccess: a command that ends well although the lease was lost
// did not end well.
func TestRunLossIsReportedOverSuccess(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	file := filepath.Join(t.TempDir(), "file")
	running := redis.background(t.Context(), "run", "k", "--grace", "1m", "--", bin, "signal", file, "15")
	exists(t, file)
	redis.run(t, "unlock", "--force", "--token", "0", "k").want(t, 0)
	finished(t, running).want(t, 79, "(command: exit status 3)")
}
