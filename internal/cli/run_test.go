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

	"github.com/asynclock/asynclock-go/asynclock"
)

// background runs the command in this process while the test goes on.
func background(ctx context.Context, args ...string) <-chan result {
	done := make(chan result, 1)
	go func() { done <- runWith(ctx, strings.NewReader(""), args...) }()
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
	until(t, filepath.Base(path), func() bool {
		var err error
		content, err = os.ReadFile(path)
		return err == nil
	})
	return string(content)
}

func TestRunExitCodes(t *testing.T) {
	startRedis(t)
	bin := program(t, beCommand)
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
	run(t, "run", "--key", "k", bin, "exit", "0").want(t, 0)
	run(t, "run", "--key", "k", bin, "exit", "1").want(t, 1)
	run(t, "run", "--key", "k", "--", bin, "exit", "64").want(t, 64)
	run(t, "run", "--key", "k", bin, "exit", "255").want(t, 255)
	run(t, "run", "--key", "k", "no-such-command-anywhere").want(t, 127, "command not found")
	run(t, "run", "--key", "k", filepath.Join(dir, "nothing")).want(t, 127, "command not found")
	run(t, "run", "--key", "k", dir).want(t, 126, "asynclock: ")
	if runtime.GOOS != "windows" {
		run(t, "run", "--key", "k", bin, "kill-self").want(t, 128+9)
		run(t, "run", "--key", "k", notExecutable).want(t, 126, "permission denied")
		run(t, "run", "--key", "k", noProgram).want(t, 126, "exec format error")
		run(t, "run", "--key", "k", noInterpreter).want(t, 127, "no such file")
	}
	run(t, "run", "--key", "k", "--wait", "0", bin, "exit", "0").want(t, 0) // every one of them unlocked
}

func TestRunGivesTheCommandItsStreamsAndEnvironment(t *testing.T) {
	startRedis(t)
	bin := program(t, beCommand)
	got := runWith(t.Context(), strings.NewReader("to and fro"), "run", "--key", "k", bin, "copy")
	if want := (result{0, "to and fro", "copied"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	tokens := [2]int64{}
	for i := range tokens {
		got := run(t, "run", "--key", "orders/42", bin, "env")
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

// TestRunOfACommandWithFlags: what follows the command is not ours.
func TestRunOfACommandWithFlags(t *testing.T) {
	startRedis(t)
	bin := program(t, beCommand)
	run(t, "run", "--key", "k", bin, "exit", "5", "--help", "--no-such-flag").want(t, 5)
}

func TestRunWhileHeld(t *testing.T) {
	startRedis(t)
	bin := program(t, beCommand)
	file := filepath.Join(t.TempDir(), "file")
	lease := hold(t, "k")[0]

	run(t, "run", "--key", "k", "--wait", "0", bin, "touch", file).
		want(t, 75, `"k" is held by a test`, fmt.Sprintf("token %d", lease.Token()), "of its TTL left")
	run(t, "run", "--key", "k", "--wait", "50ms", bin, "touch", file).
		want(t, 124, `no lock on "k" within 50ms`)
	if _, err := os.Stat(file); err == nil {
		t.Fatal("the command ran without the lock")
	}

	waiting := background(t.Context(), "run", "--key", "k", bin, "touch", file)
	client := newClient(t)
	until(t, "a waiter", func() bool {
		info, err := client.Inspect(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		return info.Waiters == 1
	})
	if err := lease.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	finished(t, waiting).want(t, 0)
	exists(t, file)
}

// TestRunHoldsWhileTheCommandRuns, for longer than the TTL, and says who it is.
func TestRunHoldsWhileTheCommandRuns(t *testing.T) {
	startRedis(t)
	bin := program(t, beCommand)
	file := filepath.Join(t.TempDir(), "file")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const ttl = 1500 * time.Millisecond // which a busy machine can renew in time
	running := background(ctx, "run", "--key", "k", "--ttl", ttl.String(), "--holder", "the night shift", bin, "sleep", file)
	exists(t, file)
	time.Sleep(2 * ttl)
	run(t, "run", "--key", "k", "--wait", "0", bin, "exit", "0").want(t, 75, "held by the night shift")
	cancel()
	finished(t, running).want(t, 128+15, "context canceled; ending the command")
}

func TestRunMinHold(t *testing.T) {
	startRedis(t)
	bin := program(t, beCommand)
	run(t, "run", "--key", "k", "--min-hold", "1h", bin, "exit", "0").want(t, 0)
	run(t, "run", "--key", "k", "--wait", "0", bin, "exit", "0").want(t, 75, "held by")
}

// The four losses. With each, the command is ended and the exit code is 79.

func TestRunUnlockedByForce(t *testing.T) {
	startRedis(t)
	bin := program(t, beCommand)
	file := filepath.Join(t.TempDir(), "file")
	running := background(t.Context(), "run", "--key", "k", bin, "sleep", file)
	exists(t, file)
	run(t, "unlock", "--force", "k").want(t, 0)
	finished(t, running).want(t, 79, `"k": lease lost: unlocked by force; ending the command`, "(command: signal: terminated)")
}

func TestRunMaxHold(t *testing.T) {
	startRedis(t)
	bin := program(t, beCommand)
	file := filepath.Join(t.TempDir(), "file")
	run(t, "run", "--key", "k", "--max-hold", "200ms", bin, "sleep", file).want(t, 79, "maximum hold reached")
}

func TestRunServerGone(t *testing.T) {
	server := startRedis(t)
	bin := program(t, beCommand)
	file := filepath.Join(t.TempDir(), "file")
	running := background(t.Context(), "run", "--key", "k", "--ttl", "300ms", bin, "sleep", file)
	exists(t, file)
	server.Close()
	finished(t, running).want(t, 79, "renewals failed until the trust deadline", "connection refused; ending the command")
}

func TestRunKeyGone(t *testing.T) {
	server := startRedis(t)
	bin := program(t, beCommand)
	file := filepath.Join(t.TempDir(), "file")
	running := background(t.Context(), "run", "--key", "k", "--ttl", "300ms", bin, "sleep", file)
	exists(t, file)
	server.FlushAll()
	finished(t, running).want(t, 79, "lease lost")
}

// TestRunLossIsReportedOverSuccess: a command that ends well although the lease was lost
// did not end well.
func TestRunLossIsReportedOverSuccess(t *testing.T) {
	startRedis(t)
	bin := program(t, beCommand)
	file := filepath.Join(t.TempDir(), "file")
	running := background(t.Context(), "run", "--key", "k", "--grace", "1m", bin, "signal", file, "15")
	exists(t, file)
	run(t, "unlock", "--force", "k").want(t, 0)
	finished(t, running).want(t, 79, "(command: exit status 3)")
}

func TestRunHolderDescription(t *testing.T) {
	startRedis(t)
	bin := program(t, beCommand)
	long := filepath.Join(t.TempDir(), strings.Repeat("ä", 100)+"\x07")
	if err := os.Symlink(bin, long); err != nil {
		t.Skip("no such file name here: ", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	running := background(ctx, "run", "--key", "k", long, "sleep", file)
	exists(t, file)
	info, err := newClient(t).Inspect(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(info.Holder, "ää") || len(info.Holder) > asynclock.MaxHolderLen {
		t.Errorf("got holder %q, want the command's name, cut", info.Holder)
	}
	cancel()
	finished(t, running)
}
