// SPDX-License-Identifier: Apache-2.0

package javapeer

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// standIn tells this program to stand in for a process of Java, or to be a holder.
const standIn = "ASYNCLOCK_JAVAPEER_STAND_IN"

func TestMain(m *testing.M) {
	switch os.Getenv(standIn) {
	case "peer":
		bePeer()
	case "holder":
		Hold()
	case "nothing":
		fmt.Fprintln(os.Stderr, "no such part")
	default:
		goleak.VerifyTestMain(m)
	}
}

// bePeer keeps back the answer to each command "later" until the next one.
func bePeer() {
	fmt.Println("ready")
	var owed string
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch id, handle, verb := fields[0], fields[1], fields[3]; verb {
		case "later":
			owed = id + " ok late"
		case "echo": // what is encoded there and back
			fmt.Println(id, "ok", fields[5])
			fmt.Println(owed)
		case "handle":
			fmt.Println(id, "ok", handle)
		case "throw":
			fmt.Println(id, "error SomeException some+message")
		default:
			fmt.Println(id, "ok")
		}
	}
}

// fakeJava has this program found as java, in the part of a peer or of what can't be
// one.
func fakeJava(t *testing.T, part string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(self, filepath.Join(bin, "java")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	t.Setenv(standIn, part)
}

// Each answer goes to its own command, whatever their order, and says what Java said.
func TestAnswers(t *testing.T) {
	fakeJava(t, "peer")
	process := Start(t, "peer.jar")
	p := process.Open(t, "an argument")
	later := p.Begin("one", "later", "key")
	const odd = "two words\n100% größe+"
	if got := p.Do("echo", "key", odd); got != odd {
		t.Errorf("echo: got %q, want %q", got, odd)
	}
	if got := p.Succeeds(later); got != "late" {
		t.Errorf("the answer that came last: got %q, want late", got)
	}
	if got := p.Do("nothing", "key"); got != "" {
		t.Errorf("a command without a value: got %q, want none", got)
	}
	if got := p.Fails("throw", "key"); got != "SomeException" {
		t.Errorf("what throws: got %q, want SomeException", got)
	}
	if got := p.Fails("nothing", "key"); got != "" {
		t.Errorf("what does not throw: got %q, want no exception", got)
	}
	p.Close()
	process.Kill()
	process.Kill() // as the test's end does it again
	p.Close()      // likewise
}

// A holder that is killed is gone.
func TestHolder(t *testing.T) {
	kill := StartHolder(t, standIn, "holder")
	kill()
	kill()
}
