// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// base is the path of the root module, and how the paths of all of ours begin.
const base = "github.com/asynclock/asynclock-go"

func isOurs(path string) bool { return path == base || strings.HasPrefix(path, base+"/") }

// A module is one that users can get.
type module struct {
	dir  string // with slashes; the root is "."
	file *modfile.File
}

func (m *module) path() string { return m.file.Module.Mod.Path }

// tag returns the name of its tag, as the go command looks for it.
func (m *module) tag(version string) string {
	if m.dir == "." {
		return version
	}
	return m.dir + "/" + version
}

// needs returns which of our modules it requires.
func (m *module) needs() (paths []string) {
	for _, r := range m.file.Require {
		if isOurs(r.Mod.Path) {
			paths = append(paths, r.Mod.Path)
		}
	}
	return paths
}

// with returns the modules of ours that it needs, and itself, at a version.
func (m *module) with(version string) (modules []string) {
	for _, path := range append(m.needs(), m.path()) {
		modules = append(modules, path+"@"+version)
	}
	return modules
}

// isReleased reports whether users can get the module in this folder: docs say which those are.
func isReleased(dir string) bool {
	parts := strings.Split(dir, "/")
	return parts[0] != "bench" && parts[0] != "examples" && !slices.Contains(parts, "internal")
}

// modules returns the released modules of a tree, those that others need first: each wave needs only those
// before it.
func modules(tree string) (waves [][]*module, err error) {
	var left []*module
	err = filepath.WalkDir(tree, func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != tree && (entry.Name()[0] == '.' || entry.Name() == "testdata"):
			return filepath.SkipDir
		case entry.Name() != "go.mod":
			return nil
		}
		dir, err := filepath.Rel(tree, filepath.Dir(path))
		if err != nil || !isReleased(filepath.ToSlash(dir)) {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := modfile.Parse(path, text, nil)
		left = append(left, &module{filepath.ToSlash(dir), file})
		return err
	})
	if err != nil {
		return nil, err
	}
	placed := map[string]bool{}
	for len(left) > 0 {
		var wave, rest []*module
		for _, m := range left {
			if slices.ContainsFunc(m.needs(), func(path string) bool { return !placed[path] }) {
				rest = append(rest, m)
			} else {
				wave = append(wave, m)
			}
		}
		if len(wave) == 0 {
			return nil, fmt.Errorf("%s needs a module that is not released, or that needs it", left[0].path())
		}
		for _, m := range wave {
			placed[m.path()] = true
		}
		waves, left = append(waves, wave), rest
	}
	return waves, nil
}

// pin has the module require ours of this version, instead of the folders beside it. Sums are their lines in go.sum.
func (m *module) pin(tree, version string, sums map[string][]string) error {
	for _, r := range slices.Clone(m.file.Replace) {
		if isOurs(r.Old.Path) {
			if err := m.file.DropReplace(r.Old.Path, r.Old.Version); err != nil {
				return err
			}
		}
	}
	sumFile := filepath.Join(tree, m.dir, "go.sum")
	text, err := os.ReadFile(sumFile)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, path := range m.needs() {
		if err := m.file.AddRequire(path, version); err != nil {
			return err
		}
		text = addSums(text, path, sums[path])
	}
	m.file.Cleanup()
	mod, err := m.file.Format()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(tree, m.dir, "go.mod"), mod, 0o644); err != nil { //nolint:gosec // as go has it
		return err
	}
	if len(text) == 0 {
		return nil
	}
	return os.WriteFile(sumFile, text, 0o644) //nolint:gosec // as go has it
}

// addSums puts the lines of a module where go mod tidy would, which sorts by path.
func addSums(text []byte, path string, lines []string) []byte {
	all := strings.SplitAfter(string(text), "\n")
	at := slices.IndexFunc(all, func(line string) bool {
		other, _, _ := strings.Cut(line, " ")
		return other > path || line == ""
	})
	if at < 0 {
		at = len(all)
	}
	return []byte(strings.Join(slices.Insert(all, at, lines...), ""))
}
