// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cli_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// alive reports whether a process runs, by the process id in text. One that
// ended and waits for its parent to notice does not.
func alive(text string) bool {
	pid, err := strconv.Atoi(text)
	if err != nil || syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + text + "/stat")
	if err != nil {
		return runtime.GOOS != "linux" // elsewhere there is no /proc
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}

// TestRunKillsAfterTheGrace: the command and what it started, though both
// ignore SIGTERM.
func TestRunKillsAfterTheGrace(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	for _, what := range []string{"stubborn", "parent"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			const grace = 300 * time.Millisecond
			file := filepath.Join(t.TempDir(), "file")
			running := redis.background(t.Context(), "run", what, "--grace", grace.String(), "--", bin, what, file)
			pid := exists(t, file)
			lost := time.Now()
			redis.run(t, "unlock", "--force", "--token", "0", what).want(t, 0)
			finished(t, running).want(t, 79, "ending the command")
			if took := time.Since(lost); took < grace {
				t.Errorf("it took %v, want the grace of %v to pass", took, grace)
			}
			kit.Eventually(t, "the end of the stubborn process", func() bool { return !alive(pid) })
		})
	}
}

// A process is the program in a process of its own, to which signals can go.
type process struct {
	*exec.Cmd
	stdout, stderr bytes.Buffer
}

func startProcess(t *testing.T, env []string, bin string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(bin, args...)}
	p.Env = env
	p.Stdout, p.Stderr = &p.stdout, &p.stderr
	p.WaitDelay = time.Second
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() }) // unless it has ended
	return p
}

func (p place) startProcess(t *testing.T, bin string, args ...string) *process {
	t.Helper()
	return startProcess(t, p.env(), bin, args...)
}

// result waits for the process to end.
func (p *process) result(t *testing.T) result {
	t.Helper()
	limit := time.AfterFunc(patience, func() { _ = p.Process.Kill() })
	defer limit.Stop()
	_ = p.Wait()
	return result{p.ProcessState.ExitCode(), p.stdout.String(), p.stderr.String()}
}

func TestRunForwardsSignals(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	file := filepath.Join(t.TempDir(), "file")
	signals := []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2}
	args := []string{"run", "k", "--", bin, "signal", file}
	for _, s := range signals {
		args = append(args, strconv.Itoa(int(s)))
	}
	p := redis.startProcess(t, bin, args...)
	exists(t, file)
	for _, s := range signals {
		if err := p.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	p.result(t).want(t, 3)
}

func TestRunSignalWhileWaiting(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	redis.hold(t, "k")
	client := redis.newClient(t)
	waiters := func(n int) func() bool {
		return func() bool {
			info, err := client.Inspect(t.Context(), "k")
			return err == nil && info.Waiters == n
		}
	}
	p := redis.startProcess(t, bin, "run", "k", "--", bin, "exit", "0")
	kit.Eventually(t, "a waiter", waiters(1))
	for _, s := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGHUP} { // the first has nowhere to go
		if err := p.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	p.result(t).want(t, 128+1, "while waiting for \"k\"")
	kit.Eventually(t, "nobody to wait", waiters(0))
}

// TestRunSignalWhileTheServerIsSilent: neither a server that does not even greet us
// nor one that keeps us waiting for an answer can keep us from obeying a signal, and
// what it says later starts no command.
func TestRunSignalWhileTheServerIsSilent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ to, wait string }{{"EVAL", "0"}, {"EVAL", "1m"}, {"HELLO", "forever"}} {
		t.Run(c.to+" "+c.wait, func(t *testing.T) {
			t.Parallel()
			for range 5 {
				got, took := signalled(t, c.to, c.wait)
				if got.code == 69 && took >= time.Second {
					continue // an answer is waited for for so long, and the machine was busy
				}
				got.want(t, 128+15, "terminated while waiting for \"k\"")
				return
			}
			t.Error("the signal came late each time")
		})
	}
}

// signalled starts the program with a server that does not answer a command, and sends it
// SIGTERM when it has asked. It returns how long after the question the program ended.
func signalled(t *testing.T, question, wait string) (result, time.Duration) {
	t.Helper()
	mini := startRedis(t)
	bin := program(t)
	asked, over := make(chan time.Time, 1), make(chan struct{})
	defer close(over)
	mini.Server().SetPreHook(func(peer *server.Peer, command string, _ ...string) bool {
		if strings.HasPrefix(command, question) {
			select {
			case asked <- time.Now():
			default:
			}
			<-over
		}
		return standalone(peer, command)
	})
	p := mini.startProcess(t, bin, "run", "k", "--wait", wait, "--", bin, "exit", "0")
	select {
	case at := <-asked:
		if err := p.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		return p.result(t), time.Since(at)
	case <-time.After(patience):
		t.Fatal("the server was not asked")
		return result{}, 0
	}
}

// TestRunUnderNohup: a signal that we were told to ignore stays ignored, for us
// and for the command.
func TestRunUnderNohup(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	file := filepath.Join(t.TempDir(), "file")
	p := redis.startProcess(t, "sh", "-c", `trap "" HUP; exec "$0" "$@"`, bin, "run", "k", "--", bin, "sleep", file)
	pid, err := strconv.Atoi(exists(t, file))
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []int{p.Process.Pid, pid} {
		if err := syscall.Kill(target, syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.result(t).want(t, 128+15)
}

// TestRunPaused: SIGSTOP can't be ignored. While we are paused the command runs on,
// beyond its lease, for others to be protected from by their tokens; when we go on,
// it is ended.
func TestRunPaused(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	file := filepath.Join(t.TempDir(), "file")
	p := redis.startProcess(t, bin, "run", "k", "--ttl", brief, "--", bin, "sleep", file)
	pid := exists(t, file)
	if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	next, err := redis.newClient(t).Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	if !alive(pid) {
		t.Error("the command has ended: the help says that it does not")
	}
	if err := p.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	p.result(t).want(t, 79, "lease lost", "ending the command")
	if err := next.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

// closedPipe returns the end of a pipe whose other end nobody has.
func closedPipe(t *testing.T) *os.File {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reader.Close()
	t.Cleanup(func() { writer.Close() })
	return writer
}

// TestRunWithNobodyToTell: messages that can't be written don't keep us from
// ending the command and giving the key back. The command itself gets SIGPIPE
// as ever.
func TestRunWithNobodyToTell(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	start := func(args ...string) *process {
		p := &process{Cmd: exec.Command(bin, args...)}
		p.Env = redis.env()
		p.Stdout, p.Stderr = closedPipe(t), closedPipe(t)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		return p
	}
	file := filepath.Join(t.TempDir(), "file")
	p := start("run", "k", "--verbose", "--grace", "300ms", "--", bin, "stubborn", file)
	pid := exists(t, file)
	redis.run(t, "unlock", "--force", "--token", "0", "k").want(t, 0)
	p.result(t).want(t, 79)
	if alive(pid) {
		t.Error("the command outlived us")
	}
	start("run", "k", "--", "sh", "-c", "while :; do echo; done").result(t).want(t, 128+int(syscall.SIGPIPE))
}

// fullPipe returns the ends of a pipe that holds no byte more.
func fullPipe(t *testing.T) (reader, writer *os.File) {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		reader.Close()
		writer.Close()
	})
	// A byte at a time, or the last bytes would stay free.
	for err == nil {
		if err = writer.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err == nil {
			_, err = writer.Write([]byte("."))
		}
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	return reader, writer
}

// TestRunWithNobodyReading: as with nobody to tell, but here somebody may read yet,
// and then finds what we had to say.
func TestRunWithNobodyReading(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	file := filepath.Join(t.TempDir(), "file")
	reader, writer := fullPipe(t)
	// The TTL is the default, so that no renewal comes at the moment of the force. A renewal
	// that finds nobody reports an expired lease.
	p := &process{Cmd: exec.Command(bin, "run", "k", "--verbose", "--grace", "300ms", "--", bin, "stubborn", file)}
	p.Env = redis.env()
	p.Stderr = writer
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() }) // unless it has ended
	pid := exists(t, file)
	redis.run(t, "unlock", "--force", "--token", "0", "k").want(t, 0)
	kit.Eventually(t, "the end of the command", func() bool { return !alive(pid) })
	writer.Close() // ours
	said := make(chan string, 1)
	go func() { // ends with the process
		text, _ := io.ReadAll(reader)
		said <- string(text)
	}()
	r := p.result(t)
	r.stderr = <-said
	r.want(t, 79, "unlocked by force; ending the command", "(command: signal: killed)")
}

// TestRunKilled: what the command started does not outlive us, and the key is free when the
// TTL has passed.
func TestRunKilled(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	file := filepath.Join(t.TempDir(), "file")
	p := redis.startProcess(t, bin, "run", "k", "--ttl", brief, "--", bin, "parent", file)
	pid := exists(t, file)
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.result(t)
	kit.Eventually(t, "the end of the stubborn process", func() bool { return !alive(pid) })
	// If the TTL takes longer than a second yet, it says what it waits for.
	redis.run(t, "run", "k", "--wait", patience.String(), "--", bin, "exit", "0").want(t, 0, "")
}

// TestRunLeavesWhatTheCommandLeft: a command that ends by itself may leave something
// running, a daemon say.
func TestRunLeavesWhatTheCommandLeft(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	file := filepath.Join(t.TempDir(), "file")
	redis.startProcess(t, bin, "run", "k", "--", bin, "leave", file).result(t).want(t, 0)
	pid, err := strconv.Atoi(exists(t, file))
	if err != nil {
		t.Fatal(err)
	}
	if !alive(strconv.Itoa(pid)) {
		t.Error("what the command left running was ended")
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

func TestRunHolderDescription(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	long := filepath.Join(t.TempDir(), strings.Repeat("ä", 100)+"\x07")
	if err := os.Symlink(bin, long); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	running := redis.background(ctx, "run", "k", "--", long, "sleep", file)
	exists(t, file)
	info, err := redis.newClient(t).Inspect(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(info.Holder, "ää") || len(info.Holder) > asynclock.MaxDescriptionLen {
		t.Errorf("got holder %q, want the command's name, cut", info.Holder)
	}
	cancel()
	finished(t, running)
}
