// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openTerminal returns both ends of a new terminal: the person's and the
// program's.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	t.Cleanup(func() { person.Close() })
	control, err := person.SyscallConn() // Fd would make reads block for ever
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	err = control.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	t.Cleanup(func() { program.Close() })
	return person, program
}

// TestRunOnATerminal: the command can read from the terminal, Ctrl-Z does not
// stop it, Ctrl-C reaches it once and nobody else, and afterwards whoever
// started us can use the terminal again.
func TestRunOnATerminal(t *testing.T) {
	startRedis(t)
	bin := program(t, beAsynclock)
	person, terminal := openTerminal(t)
	const command = `count=0; trap 'count=$((count+1))' INT
		echo ready; read line; echo "got $line"
		i=0; while [ $count = 0 ] && [ $i -lt 200 ]; do sleep 0.1; i=$((i+1)); done
		sleep 0.3; echo "interrupted $count times"; exit 7`
	const script = `"$0" run --key k sh -c "$1"; echo "code $?"; read line; echo "then $line"`
	shell := exec.Command("sh", "-c", script, bin, command)
	shell.Stdin, shell.Stdout, shell.Stderr = terminal, terminal, terminal
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	defer shell.Process.Kill()

	if err := person.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(person)
	expect := func(want string) {
		t.Helper()
		for lines.Scan() {
			if strings.HasSuffix(lines.Text(), want) { // ^C and ^Z are echoed before it
				return
			}
		}
		t.Fatalf("got no line %q: %v", want, lines.Err())
	}
	send := func(text string) {
		t.Helper()
		if _, err := person.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	expect("ready")
	send("hello\n")
	expect("got hello")
	send("\x1a") // Ctrl-Z
	send("\x03") // Ctrl-C
	expect("interrupted 1 times")
	expect("code 7")
	send("more\n")
	expect("then more")
	_ = shell.Wait()
}

// TestRunInAPipeline: the terminal stays with the pipeline, and so Ctrl-C comes
// to us and is passed on.
func TestRunInAPipeline(t *testing.T) {
	startRedis(t)
	bin := program(t, beAsynclock)
	person, terminal := openTerminal(t)
	const script = `trap : INT; { trap : INT; "$0" run --key k sh -c 'echo ready; exec sleep 20'; echo "code $?"; } |
		{ trap "" INT; exec cat; }`
	shell := exec.Command("sh", "-c", script, bin)
	shell.Stdin, shell.Stdout, shell.Stderr = terminal, terminal, terminal
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	defer shell.Process.Kill()
	if err := person.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(person)
	for _, want := range []string{"ready", "code 130"} {
		found := false
		for !found && lines.Scan() {
			found = strings.HasSuffix(lines.Text(), want)
		}
		if !found {
			t.Fatalf("got no line %q: %v", want, lines.Err())
		}
		if _, err := person.WriteString("\x03"); err != nil {
			t.Fatal(err)
		}
	}
	_ = shell.Wait()
}
