// SPDX-License-Identifier: Apache-2.0

// Package terminal has terminals for tests of programs that need one.
package terminal

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// Open returns both ends of a new terminal, which the test's end closes. A person has one, a program the other. Without
// terminals the test is left out.
func Open(t testing.TB) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		kit.Skip(t, "there are no terminals: "+err.Error())
	}
	t.Cleanup(func() { _ = person.Close() })
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
		kit.Skip(t, "there are no terminals: "+err.Error())
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		kit.Skip(t, "there are no terminals: "+err.Error())
	}
	t.Cleanup(func() { _ = program.Close() })
	return person, program
}
