// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"os"
	"path/filepath"
	"testing"
)

// Root returns the folder of the repository, whichever package is tested.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, ".golangci.yml")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("not inside the repository")
		}
		dir = parent
	}
}

// ReadFile returns the text of a file, named from the repository's root.
func ReadFile(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Root(t), filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
