// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/mod/modfile"
)

func TestMayFollow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		last, next, broken string
		may                bool
	}{
		{"", "v0.1.0", "", true},
		{"", "v1.0.0", "", true},
		{"", "0.1.0", "", false},
		{"", "v0.1", "", false},
		{"", "v0.1.0+build", "", false},
		{"", "v2.0.0", "", false},
		{"", "v1.0.0-rc.1", "", false},
		{"v0.1.0", "v0.1.0", "", false},
		{"v0.2.0", "v0.1.1", "", false},
		{"v0.1.0", "v0.1.1", "", true},
		{"v0.1.0", "v0.1.1", "Lock: removed", false},
		{"v0.1.0", "v0.2.0", "Lock: removed", true},
		{"v0.9.0", "v1.0.0", "Lock: removed", true},
		{"v1.0.0", "v1.1.0", "Lock: removed", false},
	} {
		if err := mayFollow(c.last, c.next, c.broken); (err == nil) != c.may {
			t.Errorf("%q after %q, %q: got %v, want allowed: %t", c.next, c.last, c.broken, err, c.may)
		}
	}
}

// The files are as go mod tidy would leave them. The rehearsal compares those of each module.
func TestPin(t *testing.T) {
	t.Parallel()
	tree := t.TempDir()
	text := "module " + base + "/cmd\n\nrequire (\n\t" + base + " v0.0.0\n\tgo.uber.org/goleak v1.3.0\n)\n\nreplace " + base + " => ../\n"
	file, err := modfile.Parse("go.mod", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	m := &module{"cmd", file}
	write(t, filepath.Join(tree, "cmd/go.sum"), "github.com/a/b v1.0.0 h1:x\ngo.uber.org/goleak v1.3.0 h1:y\n")
	if err := m.pin(tree, "v0.1.0", map[string][]string{base: {base + " v0.1.0 h1:z\n"}}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"cmd/go.mod": "module " + base + "/cmd\n\nrequire (\n\t" + base + " v0.1.0\n\tgo.uber.org/goleak v1.3.0\n)\n",
		"cmd/go.sum": "github.com/a/b v1.0.0 h1:x\n" + base + " v0.1.0 h1:z\ngo.uber.org/goleak v1.3.0 h1:y\n",
	} {
		if got := read(t, filepath.Join(tree, name)); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
}

func TestHeading(t *testing.T) {
	t.Parallel()
	changelog := filepath.Join(t.TempDir(), "CHANGELOG.md")
	now := time.Date(2026, 11, 27, 23, 0, 0, 0, time.FixedZone("west", -7200))
	write(t, changelog, "# Changelog\n\n## [Unreleased]\n\nThe first version.\n")
	if err := heading(changelog, "v0.1.0", now); err != nil {
		t.Fatal(err)
	}
	want := "# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-11-28\n\nThe first version.\n"
	if got := read(t, changelog); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, err := news(changelog); got != "" || err != nil {
		t.Errorf("got %q, %v; want nothing new", got, err)
	}
}

// Each module that is released needs only what is released, and the root comes first.
func TestModules(t *testing.T) {
	t.Parallel()
	waves, err := modules(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(waves) < 2 || len(waves[0]) != 1 || waves[0][0].dir != "." {
		t.Errorf("got %d waves, want the root alone in the first one", len(waves))
	}
	for _, dir := range []string{"bench", "examples", "internal/release", "internal/test/chaos", "store/zkstore/internal/zktest"} {
		if isReleased(dir) {
			t.Errorf("%s is released", dir)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestInterfacesThatStoresImplementMayGrow(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"- ./store.Session.More: added\n":                       "",
		"- ./store/redisstore/redisdriver.Driver.More: added\n": "",
		"- ./store.Session.Close: removed\n":                    "- ./store.Session.Close: removed\n",
		"- ./fence.Holder.More: added\n":                        "- ./fence.Holder.More: added\n",
	} {
		if got := mayGrow.ReplaceAllString(line, ""); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}
