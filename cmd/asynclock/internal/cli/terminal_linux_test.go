// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/kit/terminal"
)

// A person sits at one end of a terminal.
type person struct {
	t     *testing.T
	file  *os.File
	lines *bufio.Scanner
}

// expect waits for a line that ends with want; an echoed ^C may stand before.
func (p *person) expect(want string) {
	p.t.Helper()
	for p.lines.Scan() {
		if strings.HasSuffix(p.lines.Text(), want) {
			return
		}
	}
	p.t.Fatalf("got no line %q: %v", want, p.lines.Err())
}

// send types text.
func (p *person) send(text string) {
	p.t.Helper()
	if _, err := p.file.WriteString(text); err != nil {
		p.t.Fatal(err)
	}
}

// openTerminal returns both ends of a new terminal.
func openTerminal(t *testing.T) (*person, *os.File) {
	t.Helper()
	file, program := terminal.Open(t)
	if err := file.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &person{t, file, bufio.NewScanner(file)}, program
}

// startShell runs a script in a session of its own, as a login at the terminal.
func (p place) startShell(t *testing.T, terminal *os.File, script string, args ...string) {
	t.Helper()
	shell := exec.Command("sh", append([]string{"-c", script}, args...)...)
	shell.Env = p.env()
	shell.Stdin, shell.Stdout, shell.Stderr = terminal, terminal, terminal
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = shell.Process.Kill() // unless it has ended
		_ = shell.Wait()
	})
}

// TestRunOnATerminal: the command can read from the terminal, Ctrl-Z does not
// stop it, Ctrl-C reaches it once and nobody else, and afterwards whoever
// started us can use the terminal again.
func TestRunOnATerminal(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	person, terminal := openTerminal(t)
	const command = `count=0; trap 'count=$((count+1))' INT
		echo ready; read line; echo "got $line"
		i=0; while [ $count = 0 ] && [ $i -lt 200 ]; do sleep 0.1; i=$((i+1)); done
		sleep 0.3; echo "interrupted $count times"; exit 7`
	const script = `"$0" run k -- sh -c "$1"; echo "code $?"; read line; echo "then $line"`
	redis.startShell(t, terminal, script, bin, command)
	person.expect("ready")
	person.send("hello\n")
	person.expect("got hello")
	person.send("\x1a") // Ctrl-Z
	person.send("\x03") // Ctrl-C
	person.expect("interrupted 1 times")
	person.expect("code 7")
	person.send("more\n")
	person.expect("then more")
}

// TestRunInAPipeline: the terminal stays with the pipeline, whose other members
// may need it, and so Ctrl-C comes to us and is passed on.
func TestRunInAPipeline(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	person, terminal := openTerminal(t)
	const script = `trap : INT
		{ trap : INT; "$0" run k -- sh -c 'echo ready; exec sleep 20'; echo "code $?"; } |
		{ trap "" INT; read first; read line </dev/tty; echo "$first and read $line"; exec cat; }`
	redis.startShell(t, terminal, script, bin)
	person.send("hello\n")
	person.expect("ready and read hello")
	person.send("\x03")
	person.expect("code 130")
}

// TestRunIsNotStoppedByTheTerminal: when we are stopped, the command runs on and
// nobody renews its lease; when it is stopped, it keeps the key. So nothing that a
// person does at a terminal stops either, whatever is redirected. The shell has job
// control: only then does a terminal stop anything at all.
func TestRunIsNotStoppedByTheTerminal(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	out := filepath.Join(t.TempDir(), "out")
	t.Run("Ctrl-Z with a redirected stdout", func(t *testing.T) {
		person, terminal := openTerminal(t)
		file := filepath.Join(t.TempDir(), "file")
		const command = `echo ready >&2; while ! [ -e "$0" ]; do sleep 0.1; done; exit 7`
		redis.startShell(t, terminal, `set -m; "$0" run k -- sh -c "$1" "$2" >"$3"; echo "code $?"`, bin, command, file, out)
		person.expect("ready")
		person.send("\x1a") // Ctrl-Z
		person.send("typed\n")
		person.expect("typed") // its echo; the signal was sent before
		touch(file)
		person.expect("code 7")
	})
	t.Run("the command reads in the background", func(t *testing.T) {
		person, terminal := openTerminal(t)
		const command = `cat /dev/tty >&2; exit 7`
		redis.startShell(t, terminal, `set -m; "$0" run k -- sh -c "$1" >"$2"; echo "code $?"`, bin, command, out)
		person.expect("Input/output error")
		person.expect("code 7")
	})
	t.Run("the command writes in the background", func(t *testing.T) {
		person, terminal := openTerminal(t)
		const command = `echo written >&2; exit 7`
		redis.startShell(t, terminal, `set -m; stty tostop; "$0" run k -- sh -c "$1" >"$2"; echo "code $?"`, bin, command, out)
		person.expect("written")
		person.expect("code 7")
	})
	t.Run("we write in the background", func(t *testing.T) {
		person, terminal := openTerminal(t)
		file := filepath.Join(t.TempDir(), "file")
		redis.startShell(t, terminal, `set -m; stty tostop; "$0" run lost --ttl 2s -- "$0" stubborn "$1"; echo "code $?"`, bin, file)
		exists(t, file)
		redis.run(t, "unlock", "--force", "--token", "0", "lost").want(t, 0)
		person.expect("ending the command")
		person.expect("code 79")
	})
}

// TestUnlockAsksOnATerminal: without --token, a person sees whom the key would be taken from, and
// nothing is done without a yes.
func TestUnlockAsksOnATerminal(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	lease := redis.hold(t, "k")[0]
	for _, c := range []struct {
		answer, says, code string
		valid              bool
	}{
		{"\n", "not confirmed; nothing was taken", "code 75", true},
		{"y\n", "k: taken from its holder", "code 0", false},
		{"", "k: nobody held it", "code 0", false},
	} {
		person, terminal := openTerminal(t)
		redis.startShell(t, terminal, `"$0" unlock --force k; echo "code $?"`, bin)
		if c.answer != "" {
			person.expect("of its TTL left)")
			person.send(c.answer)
		}
		person.expect(c.says)
		person.expect(c.code)
		if !c.valid && c.answer != "" {
			<-lease.Done()
		}
		if got := lease.Valid(0); got != c.valid {
			t.Errorf("after %q: got the lease valid %v, want %v", c.answer, got, c.valid)
		}
	}
}

// TestUnlockTakesFromWhomItShowed: the key went to another while the person thought.
func TestUnlockTakesFromWhomItShowed(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	redis.hold(t, "k")
	person, terminal := openTerminal(t)
	redis.startShell(t, terminal, `"$0" unlock --force k; echo "code $?"`, bin)
	person.expect("of its TTL left)")
	redis.run(t, "unlock", "--force", "--token", "0", "k").want(t, 0)
	next := redis.hold(t, "k")[0]
	person.send("y\n")
	person.expect("; nothing was taken")
	person.expect("code 75")
	if !next.Valid(0) {
		t.Errorf("the next lease: got %v, want it valid", next.Err())
	}
}
