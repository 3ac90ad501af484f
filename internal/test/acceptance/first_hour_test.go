// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// A newcomer starts a server and the README's first program. The server grants nothing for 15 s, so
// the program has to say why it waits, and what to do about that in development.
func TestFirstProgramOnAFreshServerSaysWhyItWaits(t *testing.T) {
	t.Parallel()
	source := firstProgram(t)
	binary := filepath.Join(t.TempDir(), "first")
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay(t, "testdata/first/main.go", source), "-o", binary, "./testdata/first")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the README's first program: %v\n%s\n%s", err, out, source)
	}

	server := redistest.Start(t, servers.Config{})
	program := exec.CommandContext(t.Context(), binary, "redis://"+server.Addr)
	stderr, err := program.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	text := bufio.NewScanner(stderr)
	for text.Scan() {
		if strings.Contains(text.Text(), "nothing is granted") {
			break
		}
	}
	line := text.Text()
	if !strings.Contains(line, "WithoutFailoverGrace") {
		t.Errorf("the first line on stderr: got %q, want it to say that nothing is granted, and what to use in development", line)
	}
	t.Logf("after %v: %s", time.Since(began), line)
	if err := program.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = program.Wait() // it was killed
}

// firstProgram returns the README's first block of Go, which is a program, with the server's URL as its argument.
func firstProgram(t *testing.T) string {
	t.Helper()
	const url = `"redis://127.0.0.1:6379"`
	block := goBlocks(kit.ReadFile(t, "README.md"))[0]
	if !strings.Contains(block, url) {
		t.Fatalf("the README's first block does not open %s:\n%s", url, block)
	}
	withArgs := strings.Replace(block, "import (\n", "import (\n\t\"os\"\n", 1)
	return strings.Replace(withArgs, url, "os.Args[1]", 1)
}

// overlay returns a file for the go command's flag of that name, which gives it one more source.
func overlay(t *testing.T, name, source string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "main.go")
	name, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {name: file}})
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string][]byte{file: []byte(source), filepath.Join(dir, "overlay.json"): list} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "overlay.json")
}
