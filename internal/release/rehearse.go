// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A rehearsal makes releases in a copy, and does what their users do.
type rehearsal struct {
	dir    string // of everything
	copy   place
	others string // where modules of others are
	short  bool
	began  time.Time
}

// rehearse shows what users of the next releases get. With short, only README's first program and the command.
func rehearse(ctx context.Context, tree string, short bool) error {
	dir, err := os.MkdirTemp("", "asynclock-rehearsal-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := rehearsal{dir: dir, copy: place{dir: filepath.Join(dir, "copy")}, short: short, began: time.Now()}
	if r.others, err = proxies(ctx); err != nil {
		return err
	}
	if err := r.begin(ctx, tree); err != nil {
		return err
	}
	if err := r.first(ctx); err != nil || short {
		return err
	}
	if err := r.second(ctx); err != nil {
		return err
	}
	return r.third(ctx)
}

// begin copies what is committed, as a repository from which nothing was released.
func (r *rehearsal) begin(ctx context.Context, tree string) error {
	if err := os.Mkdir(r.copy.dir, 0o700); err != nil {
		return err
	}
	if err := clone(ctx, tree, r.copy.dir); err != nil {
		return err
	}
	return r.copy.all(ctx,
		[]string{"git", "config", "user.name", "rehearsal"},
		[]string{"git", "config", "user.email", "rehearsal@localhost"},
		[]string{"git", "config", "commit.gpgsign", "false"},
		[]string{"git", "config", "tag.gpgsign", "false"},
		[]string{"git", "config", "core.hooksPath", "/dev/null"},
		[]string{"bash", "-c", "git tag --list | xargs --no-run-if-empty git tag -d"},
	)
}

// say tells what has been seen, with its time.
func (r *rehearsal) say(format string, args ...any) {
	fmt.Printf("%4.0f s  %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}

// first is v0.1.0: each module is of use to somebody who has nothing else of ours.
func (r *rehearsal) first(ctx context.Context) error {
	tags, err := tag(ctx, r.copy.dir, "v0.1.0")
	if err != nil {
		return err
	}
	r.say("v0.1.0 is made, with %d tags: %s", len(tags), strings.Join(tags, " "))
	waves, err := modules(r.copy.dir)
	if err != nil {
		return err
	}
	var all error
	for _, wave := range waves {
		for _, m := range wave {
			switch {
			case m.dir == "cmd/asynclock":
				err = errors.Join(r.tidy(ctx, m), r.install(ctx, m))
			case !r.short:
				err = errors.Join(r.tidy(ctx, m), r.use(ctx, m, "v0.1.0"))
			case m.dir == ".":
				err = r.use(ctx, m, "v0.1.0")
			default:
				continue
			}
			if err != nil {
				r.say("%s: %v", m.dir, err)
			}
			all = errors.Join(all, err)
		}
	}
	return all
}

// second is v0.1.1: who has v0.1.0 and updates the root alone builds as before.
func (r *rehearsal) second(ctx context.Context) error {
	err := os.WriteFile(filepath.Join(r.copy.dir, "asynclock/rehearsal.go"), []byte("package asynclock\n\nfunc Rehearsed() {}\n"), 0o600)
	if err != nil {
		return err
	}
	if err := r.change(ctx, "asynclock: Rehearsed", "true"); err != nil {
		return err
	}
	if err := compare(ctx, r.copy.dir, func(c comparison) error { return c.holds(ctx, false) }); err != nil {
		return err
	}
	if _, err := tag(ctx, r.copy.dir, "v0.1.1"); err != nil {
		return err
	}
	return r.update(ctx, "v0.1.1", "builds")
}

// third breaks what sqlstore needs of the root. The check says so; who does not look has a store that does not build.
func (r *rehearsal) third(ctx context.Context) error {
	err := r.change(ctx, "store: ErrUnsure", "bash", "-c", `git grep -lw ErrOutcomeUnknown -- '*.go' | xargs sed -i 's/\bErrOutcomeUnknown\b/ErrUnsure/g'`)
	if err != nil {
		return err
	}
	err = compare(ctx, r.copy.dir, func(c comparison) error { return c.holds(ctx, false) })
	if err == nil || !strings.Contains(err.Error(), "store/sqlstore of the last release does not build") {
		return fmt.Errorf("the check has not noticed that sqlstore lacks a name: %v", err) //nolint:errorlint // which may be nil
	}
	r.say("the check refuses a root without a name that sqlstore needs:\n%v", err)
	err = compare(ctx, r.copy.dir, func(c comparison) error {
		broken, err := c.broken(ctx)
		if mayFollow("v0.1.1", "v0.1.2", broken) == nil || mayFollow("v0.1.1", "v0.2.0", broken) != nil {
			err = errors.Join(err, errors.New("it may be v0.1.2, or may not be v0.2.0"))
		}
		r.say("so it can't be v0.1.2:\n%s", broken)
		return err
	})
	if err != nil {
		return err
	}
	if err := r.change(ctx, "changelog", "sed", "-i", `s/^## \[Unreleased\]$/&\n\n### Changed\n\n- A name.\n/`, "CHANGELOG.md"); err != nil {
		return err
	}
	if _, err := tag(ctx, r.copy.dir, "v0.2.0"); err != nil {
		return err
	}
	return r.update(ctx, "v0.2.0", "does not build")
}

// change commits what a command does to the copy.
func (r *rehearsal) change(ctx context.Context, message string, command ...string) error {
	return r.copy.all(ctx, command, []string{"git", "add", "-A"}, []string{"git", "commit", "-qm", message})
}
