// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/zip"
)

// root is the repository's, from here.
const root = "../.."

// Users get a module as a zip, which go refuses to make if it has a name that some system reserves, such as
// nul, or a file that is too large. A tag of such a tree could never be downloaded.
func TestModulesCanBeZipped(t *testing.T) {
	t.Parallel()
	modules := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && entry.Name() != "..":
			return fs.SkipDir
		case entry.Name() != "go.mod":
			return nil
		}
		modules++
		checkZip(t, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if modules < 2 {
		t.Errorf("got %d modules, want at least that of the library and this one", modules)
	}
}

func checkZip(t *testing.T, goMod string) {
	text, err := os.ReadFile(goMod)
	if err != nil {
		t.Fatal(err)
	}
	files, err := zip.CheckDir(filepath.Dir(goMod))
	if err == nil {
		err = files.Err()
	}
	if err != nil {
		t.Errorf("%s: %v", modfile.ModulePath(text), err)
	}
}
