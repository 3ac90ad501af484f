// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"go/format"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// The README and the pages in docs show code that runs: each of their blocks of Go stands, line for
// line, in a file of examples.
func TestPagesShowCodeOfExamples(t *testing.T) {
	t.Parallel()
	examples := exampleCode(t)
	blocks := 0
	for page, text := range pages(t) {
		for _, block := range goBlocks(text) {
			blocks++
			formatted, err := format.Source([]byte(block))
			switch {
			case err != nil:
				t.Errorf("%s shows what is no Go: %v\n%s", page, err, block)
			case !strings.Contains(examples, plain(string(formatted))):
				t.Errorf("%s shows what no example file has:\n%s", page, block)
			}
		}
	}
	if want := 20; blocks < want {
		t.Errorf("got %d blocks of Go in README.md and docs, want at least %d", blocks, want)
	}
}

// An answer has a few lines, and the way to the long one.
func TestAnswersAreShort(t *testing.T) {
	t.Parallel()
	const most = 6
	_, answers, _ := strings.Cut(kit.ReadFile(t, "docs/faq.md"), "\n## ")
	all := strings.Split(answers, "\n## ")
	if want := 20; len(all) < want {
		t.Errorf("got %d answers, want at least %d", len(all), want)
	}
	for _, answer := range all {
		question, text, _ := strings.Cut(answer, "\n")
		if lines := strings.Count(strings.TrimSpace(text), "\n") + 1; lines > most {
			t.Errorf("%s: got %d lines, want at most %d", question, lines, most)
		}
		if !strings.Contains(text, "](") {
			t.Errorf("%s: got no link, want one", question)
		}
	}
}

// pages returns the README and all pages below docs.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"README.md": kit.ReadFile(t, "README.md")}
	err := fs.WalkDir(os.DirFS(kit.Root(t)), "docs", func(name string, _ fs.DirEntry, err error) error {
		if err == nil && path.Ext(name) == ".md" {
			all[name] = kit.ReadFile(t, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// exampleCode returns what plain leaves of all files of examples.
func exampleCode(t *testing.T) string {
	t.Helper()
	var code strings.Builder
	root := os.DirFS(kit.Root(t))
	err := fs.WalkDir(root, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if isExample, err := path.Match("example*_test.go", path.Base(name)); !isExample || err != nil {
			return err
		}
		source, err := fs.ReadFile(root, name)
		code.WriteString(plain(string(source)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return code.String()
}

// goBlocks returns the code between each line ```go and the next ```.
func goBlocks(markdown string) []string {
	var blocks []string
	var block strings.Builder
	inside := false
	for line := range strings.Lines(markdown) {
		switch fence := strings.TrimSpace(line); {
		case !inside && fence == "```go":
			inside = true
		case inside && fence == "```":
			blocks = append(blocks, block.String())
			block.Reset()
			inside = false
		case inside:
			block.WriteString(line)
		}
	}
	if inside {
		blocks = append(blocks, block.String())
	}
	return blocks
}

// plain leaves of a text what two places of the same code have in common: how
// deep it is nested, blank lines and the columns of comments may differ.
func plain(text string) string {
	var b strings.Builder
	b.WriteByte('\n')
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 0 {
			b.WriteString(strings.Join(words, " "))
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func TestGoBlocks(t *testing.T) {
	t.Parallel()
	got := goBlocks("text\n```go\na := 1\n```\n```sh\nls\n```\n  ```go\n  b()\n\n  c()\n  ```\n```go\nopen()\n")
	want := []string{"a := 1\n", "  b()\n\n  c()\n", "open()\n"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPlainFindsNestedCode(t *testing.T) {
	t.Parallel()
	file := plain("func Example() {\n\tif x {\n\t\tlock()   // why\n\n\t\tunlock()\n\t}\n}\n")
	if !strings.Contains(file, plain("lock() // why\nunlock()")) {
		t.Errorf("got %q, want both lines in it", file)
	}
	if strings.Contains(file, plain("lock()")) {
		t.Errorf("got %q, want whole lines only", file)
	}
}
