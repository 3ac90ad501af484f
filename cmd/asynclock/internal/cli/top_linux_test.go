// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// reads waits until the screen was sent these texts, one after the other, wherever on it.
func (p *person) reads(texts ...string) {
	p.t.Helper()
	got, buffer := "", make([]byte, 4096)
	for _, want := range texts {
		for !strings.Contains(got, want) {
			n, err := p.file.Read(buffer)
			if err != nil {
				p.t.Fatalf("got %q, want %q: %v", got, want, err)
			}
			got += string(buffer[:n])
		}
		_, got, _ = strings.Cut(got, want)
	}
}

// TestTopEndsByASignal, with the signal's code, and leaves the screen as it was.
func TestTopEndsByASignal(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	redis.hold(t, "k")
	const script = `sh -c 'echo $$ >"$1"; exec "$0" top' "$0" "$1"; echo "code $?"`
	person, terminal := openTerminal(t)
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 10, Col: 90}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pid")
	redis.startShell(t, terminal, script, program(t), file)
	person.reads("exclusive")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	person.reads("\x1b[?1049l", fmt.Sprint("code ", 128+int(syscall.SIGTERM)))
}

// TestTopIntoAFile is refused: nobody would see the screen.
func TestTopIntoAFile(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	person, terminal := openTerminal(t)
	redis.startShell(t, terminal, `"$0" top >"$1"; echo "code $?"`, program(t), filepath.Join(t.TempDir(), "file"))
	person.expect("'asynclock watch' prints lines")
	person.expect("code 64")
}
