// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPackaging(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	outputOf(t, "packaging", dir)
	written := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	for _, name := range []string{
		"bash-completion/completions/asynclock", "zsh/site-functions/_asynclock", "fish/vendor_completions.d/asynclock.fish",
		"man/man1/asynclock.1",
	} {
		if !strings.Contains(written(name), "asynclock") {
			t.Errorf("%s: got nothing about asynclock", name)
		}
	}
	pages := 0
	for _, c := range new(app).rootCommand().Commands() {
		name := "man/man1/asynclock-" + c.Name() + ".1"
		if c.Hidden {
			if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); err == nil {
				t.Errorf("got %s, want none of a hidden command", name)
			}
			continue
		}
		pages++
		page := written(name)
		for _, want := range []string{roff(c.Short), roff(strings.Trim(c.Long, "\n")), roff(c.Example), "asynclock(1)"} {
			if !strings.Contains(page, want) {
				t.Errorf("%s: got %q, want it to contain %q", name, page, want)
			}
		}
	}
	if pages < 10 {
		t.Errorf("got %d pages, want one of each command", pages)
	}
}

func TestRoff(t *testing.T) {
	t.Parallel()
	if got, want := roff(".a \\\n'b' --c"), "\\&.a \\e\n\\&'b' \\-\\-c"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
