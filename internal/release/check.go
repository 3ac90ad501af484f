// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/semver"
)

const apidiff = "golang.org/x/exp/cmd/apidiff@v0.0.0-20261113113407-e3970619a1a4"

// mayGrow is what docs/compatibility.md allows: interfaces that stores and drivers implement may gain methods.
var mayGrow = regexp.MustCompile(`(?m)^- \./store(/redisstore/redisdriver)?\.[^\n]*: added$\n?`)

// lastTag returns the newest release that a repository knows, or "".
func lastTag(ctx context.Context, tree string) (last string, err error) {
	said, err := place{dir: tree}.run(ctx, "git", "tag", "--list", "v*")
	for name := range strings.FieldsSeq(said) {
		if semver.IsValid(name) && semver.Compare(name, last) > 0 {
			last = name
		}
	}
	return last, err
}

// A comparison is of a tree with the release before it.
type comparison struct {
	tree, old string // folders
	oldWaves  [][]*module
}

// alone is how the modules of a folder are built: each by itself, with those beside it as replacements.
var alone = []string{"GOWORK=off", "GOFLAGS=-mod=mod", "GOSUMDB=off"}

// compare calls do with the last release in a folder of its own. Without a release there is nothing to do.
func compare(ctx context.Context, tree string, do func(comparison) error) error {
	last, err := lastTag(ctx, tree)
	if err != nil || last == "" {
		fmt.Println("nothing has been released yet to compare with")
		return err
	}
	dir, err := os.MkdirTemp("", "asynclock-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c := comparison{tree: tree, old: dir}
	if err := (place{dir: tree}).all(ctx, []string{"git", "clone", "-q", "--branch", last, ".", dir}); err != nil {
		return err
	}
	if c.oldWaves, err = modules(dir); err != nil {
		return err
	}
	for _, wave := range c.oldWaves {
		for _, m := range wave {
			for _, need := range m.needs() { // they may not be public yet
				beside := filepath.Join(dir, strings.TrimPrefix(need, base))
				if _, err := (place{dir: filepath.Join(dir, m.dir), env: alone}).run(ctx, "go", "mod", "edit", "-replace="+need+"="+beside); err != nil {
					return err
				}
			}
		}
	}
	return do(c)
}

// skew builds each module of the last release beside this tree's root, as a user gets it who updates only the root. A
// command is installed with the root that it requires.
func (c comparison) skew(ctx context.Context) error {
	var broken []error
	for _, wave := range c.oldWaves[1:] {
		for _, m := range wave {
			if strings.HasPrefix(m.dir, "cmd/") {
				continue
			}
			p := place{dir: filepath.Join(c.old, m.dir), env: alone}
			if err := p.all(ctx, []string{"go", "mod", "edit", "-replace=" + base + "=" + c.tree}, []string{"go", "build", "./..."}); err != nil {
				broken = append(broken, fmt.Errorf("%s of the last release does not build beside this root: %w", m.dir, err))
				continue
			}
			fmt.Printf("%-24s of the last release builds beside this root\n", m.dir)
		}
	}
	return errors.Join(broken...)
}

// broken returns what programs can't do any more that they could with the last release, by module.
func (c comparison) broken(ctx context.Context) (string, error) {
	now, err := modules(c.tree)
	if err != nil {
		return "", err
	}
	here := map[string]string{}
	for _, wave := range now {
		for _, m := range wave {
			here[m.path()] = m.dir
		}
	}
	tool := place{dir: c.old, env: []string{"GOBIN=" + c.old, "GOWORK=off"}}
	if _, err := tool.run(ctx, "go", "install", apidiff); err != nil {
		return "", err
	}
	command := filepath.Join(c.old, "apidiff")
	var all strings.Builder
	for _, wave := range c.oldWaves {
		for _, m := range wave {
			dir, ok := here[m.path()]
			if !ok {
				fmt.Fprintf(&all, "%s: the module is gone\n", m.path())
				continue
			}
			api := filepath.Join(c.old, m.dir, "api.export")
			if _, err := (place{dir: filepath.Join(c.old, m.dir), env: alone}).run(ctx, command, "-m", "-w", api, m.path()); err != nil {
				return "", err
			}
			said, err := place{dir: filepath.Join(c.tree, dir), env: alone}.run(ctx, command, "-m", "-incompatible", api, m.path())
			if err != nil {
				return "", err
			}
			if said = strings.TrimSpace(mayGrow.ReplaceAllString(said, "")); said != "" {
				fmt.Fprintf(&all, "%s:\n%s\n", m.path(), said)
			}
		}
	}
	return all.String(), nil
}

// mayFollow says why a version can't be the next after the last one, or nil.
func mayFollow(last, next, broken string) error {
	switch {
	case semver.Canonical(next) != next || semver.Prerelease(next)+semver.Build(next) != "":
		return fmt.Errorf("%q is no version like v1.2.3", next)
	case semver.Compare(next, "v2.0.0-0") >= 0:
		return errors.New("from v2 on the paths of the modules have to say so")
	case last == "":
		return nil
	case semver.Compare(next, last) <= 0:
		return fmt.Errorf("%s was released already", last)
	case broken == "":
		return nil
	case semver.Major(next) == "v0" && semver.MajorMinor(next) != semver.MajorMinor(last):
		return nil
	case semver.Major(next) != semver.Major(last):
		return nil
	}
	return fmt.Errorf("%s breaks programs for %s:\n%s", next, last, broken)
}
