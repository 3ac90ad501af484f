// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// A mutant is a small edit that breaks one rule, and the test that must notice.
type mutant struct {
	name  string // the rule that is broken, in words
	pkg   string // of the test, as a path from the repository's root
	test  string // TestName or TestName/subtest; empty: not known yet
	edits []edit
}

// An edit replaces whole lines of one file.
type edit struct {
	file     string // from the repository's root
	old, new string // each line with its newline
}

// parseAll reads the list of every package below root: its testdata/mutants.txt.
func parseAll(root fs.FS) (all []mutant, err error) {
	seen := make(map[string]bool)
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && strings.HasPrefix(path.Base(name), "."):
			return fs.SkipDir // the repository's own
		case entry.IsDir() || !strings.HasSuffix(name, "testdata/mutants.txt"):
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		some, err := parse(name, string(text))
		if err != nil {
			return err
		}
		for _, m := range some {
			if seen[m.name] {
				return fmt.Errorf("%s: two mutants are called %q", name, m.name)
			}
			seen[m.name] = true
		}
		all = append(all, some...)
		return nil
	})
	return all, err
}

// parse reads a list. Mutants are separated by empty lines; outside of mutants,
// lines that begin with # are comments. A mutant is
//
//	mutant: the rule that is broken, in words
//	test: path/of/package TestName
//	file: path/of/file
//	 a line that stays
//	-a line that goes
//	+a line that comes instead
//
// where file and its lines may come several times. Lines that stay say which place is meant.
func parse(name, text string) (all []mutant, err error) {
	var m *mutant
	for i, line := range strings.Split(text, "\n") {
		if m == nil {
			if line == "" || line[0] == '#' {
				continue
			}
			m = new(mutant)
		}
		if line == "" {
			err = m.complete()
			all, m = append(all, *m), nil
		} else {
			err = m.add(line)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
		}
	}
	if m != nil {
		return nil, fmt.Errorf("%s: the last mutant does not end with an empty line", name)
	}
	return all, nil
}

// isTest matches a test and a package that need no quoting anywhere.
var isTest = regexp.MustCompile(`^([a-z0-9][a-z0-9/-]*|\.)(?: ((?:Test|Fuzz|Example)\w+(?:/[\w.,-]+)*))?$`)

// add takes in one line of a mutant.
func (m *mutant) add(line string) error {
	if strings.ContainsAny(line[:1], " -+") {
		if len(m.edits) == 0 {
			return errors.New("an edit before its file")
		}
		e := &m.edits[len(m.edits)-1]
		if line[0] != '+' {
			e.old += line[1:] + "\n"
		}
		if line[0] != '-' {
			e.new += line[1:] + "\n"
		}
		return nil
	}
	key, value, _ := strings.Cut(line, ": ")
	switch key {
	case "mutant":
		m.name = value
	case "test":
		parts := isTest.FindStringSubmatch(value)
		if parts == nil {
			return fmt.Errorf("not a package and a test: %q", value)
		}
		m.pkg, m.test = parts[1], parts[2]
	case "file":
		if path.Clean(value) != value || path.IsAbs(value) || strings.HasPrefix(value, "..") {
			return fmt.Errorf("not a file of this module: %q", value)
		}
		m.edits = append(m.edits, edit{file: value})
	default:
		return fmt.Errorf("unknown line %q", line)
	}
	return nil
}

// complete says what a mutant lacks.
func (m *mutant) complete() error {
	switch {
	case m.name == "":
		return errors.New("a mutant without a name")
	case m.pkg == "":
		return fmt.Errorf("%q names no test", m.name)
	case len(m.edits) == 0:
		return fmt.Errorf("%q changes nothing", m.name)
	}
	for _, e := range m.edits {
		if e.old == "" || e.old == e.new {
			return fmt.Errorf("%q changes nothing in %s", m.name, e.file)
		}
		if strings.HasSuffix(e.file, "_test.go") {
			return fmt.Errorf("%q breaks a test", m.name)
		}
	}
	return nil
}
