// SPDX-License-Identifier: Apache-2.0

// Command release makes a release of all modules at once, and shows what its users get.
//
//	.ci/release v1.2.3            runs the gate, makes the commits and tags here, and says how to push them
//	.ci/release -dry-run v1.2.3   does so in a copy, without the gate, and prints what would be there
//	.ci/release -check            builds the last release beside this root, runs both against ASYNCLOCK_REDIS_URL, and
//	                              compares the API; -short does the first of these
//	.ci/release -rehearse         makes releases in a copy, and is their user; -short of README's program and the command
//	.ci/release -replace FOLDER   has the module in a folder use this clone, as long as nothing is released
//
// All modules of a release have one version, and their tags are of one commit. Each requires the others by that
// version. Its go.sum can be made before anything is pushed, because the go command takes the modules from a copy.
// So no module waits until another one is public. A failure leaves nothing behind.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	dry := flags.Bool("dry-run", false, "leave everything as it is")
	check := flags.Bool("check", false, "compare with the last release")
	asUser := flags.Bool("rehearse", false, "release a copy, and be its user")
	short := flags.Bool("short", false, "check or rehearse the most important only")
	user := flags.String("replace", "", "the folder of a module that is to use this clone")
	if err := flags.Parse(args); err != nil {
		return err
	}
	tree := filepath.Dir(os.Getenv("GOWORK")) // from .ci/release; commands in other folders must not see it
	if tree == "." {
		return errors.New("it is called by .ci/release")
	}
	if err := os.Unsetenv("GOWORK"); err != nil {
		return err
	}
	switch {
	case *check && flags.NArg() == 0:
		return compare(ctx, tree, func(c comparison) error { return c.holds(ctx, *short) })
	case *asUser && flags.NArg() == 0:
		return rehearse(ctx, tree, *short)
	case *user != "" && flags.NArg() == 0:
		return replace(ctx, tree, *user)
	case !*check && !*asUser && flags.NArg() == 1:
		return release(ctx, tree, flags.Arg(0), *dry)
	}
	return errors.New("what is to be released? Try -h")
}

// holds is what the gate looks at, by day in short. Whose program that breaks finds it in the changelog.
func (c comparison) holds(ctx context.Context, short bool) error {
	if err := c.skew(ctx); err != nil || short {
		return err
	}
	if err := c.beside(ctx); err != nil {
		return err
	}
	broken, err := c.broken(ctx)
	if err != nil || broken == "" {
		return err
	}
	fmt.Print("programs have to be changed for:\n", broken)
	changes, err := news(filepath.Join(c.tree, "CHANGELOG.md"))
	if err == nil && !strings.Contains(changes, "### Removed\n") && !strings.Contains(changes, "### Changed\n") {
		err = errors.New("the changelog has nothing that was changed or removed")
	}
	return err
}

// release makes a version in a copy of the repository, and then brings it here.
func release(ctx context.Context, tree, version string, dry bool) error {
	git := place{dir: tree}
	last, err := lastTag(ctx, tree)
	if err != nil {
		return err
	}
	if last == version {
		return isHere(ctx, tree, version)
	}
	if err := mayBegin(ctx, git, tree, last, version); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "asynclock-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := clone(ctx, tree, dir); err != nil {
		return err
	}
	if !dry {
		if err := isGreen(ctx, git, dir); err != nil {
			return err
		}
	}
	if _, err := tag(ctx, dir, version); err != nil {
		return err
	}
	if dry {
		said, err := place{dir: dir}.run(ctx, "git", "log", "--stat", "--patch", "--reverse", "HEAD^.."+version, "--", "CHANGELOG.md", "*go.mod", "*go.sum")
		fmt.Printf("%s\n\nThese are not here. They would be pushed by:\n", said)
		return errors.Join(err, pushed(ctx, dir, version))
	}
	err = git.all(ctx, // the tags last: as long as they are not here, nothing is
		[]string{"git", "fetch", "-q", "--no-tags", dir, "main"},
		[]string{"git", "merge", "-q", "--ff-only", "FETCH_HEAD"},
		[]string{"git", "fetch", "-q", "--atomic", dir, "refs/tags/*:refs/tags/*"},
	)
	if err != nil {
		return err
	}
	return isHere(ctx, tree, version)
}

// mayBegin says why a release can't be made.
func mayBegin(ctx context.Context, git place, tree, last, version string) error {
	if err := isClean(ctx, git); err != nil {
		return err
	}
	if changes, err := news(filepath.Join(tree, "CHANGELOG.md")); err != nil || changes == "" {
		return errors.Join(err, errors.New("the changelog says of nothing that it is not released yet"))
	}
	broken := ""
	if err := compare(ctx, tree, func(c comparison) (err error) { broken, err = c.broken(ctx); return err }); err != nil {
		return err
	}
	return mayFollow(last, version, broken)
}

// isHere says how to push a release that the repository has.
func isHere(ctx context.Context, tree, version string) error {
	if _, err := (place{dir: tree}).run(ctx, "git", "merge-base", "--is-ancestor", version+"^", "main"); err != nil {
		return fmt.Errorf("the changelog of %s is not on main: %w", version, err)
	}
	fmt.Println(version, "is here: main has its changelog, and the tags are of a commit beside it. To push them:")
	return pushed(ctx, tree, version)
}

// clone copies what is committed, as the branch main, for the same author.
func clone(ctx context.Context, tree, dir string) error {
	err := place{dir: dir}.all(ctx,
		[]string{"git", "clone", "-q", tree, "."},
		[]string{"git", "checkout", "-q", "-B", "main"},
	)
	for _, name := range []string{"user.name", "user.email", "user.signingkey", "commit.gpgsign", "tag.gpgsign"} {
		if value, _ := (place{dir: tree}).run(ctx, "git", "config", name); value != "" && err == nil {
			_, err = place{dir: dir}.run(ctx, "git", "config", name, value)
		}
	}
	return err
}

// replace leads a user's module to the folders of this clone. Those that it does not use do no harm.
func replace(ctx context.Context, tree, user string) error {
	waves, err := modules(tree)
	if err != nil {
		return err
	}
	edit := []string{"go", "mod", "edit"}
	for _, wave := range waves {
		for _, m := range wave {
			edit = append(edit, "-replace="+m.path()+"="+filepath.Join(tree, m.dir))
		}
	}
	_, err = place{dir: user}.run(ctx, edit...)
	return err
}

// isClean says why a release can't be made of what is here.
func isClean(ctx context.Context, git place) error {
	if origin, _ := git.run(ctx, "git", "remote"); origin != "" {
		// Tags of releases are of commits beside main, so git brings none by itself.
		err := git.all(ctx,
			[]string{"git", "fetch", "-q", "origin", "main", "refs/tags/*:refs/tags/*"},
			[]string{"git", "merge-base", "--is-ancestor", "FETCH_HEAD", "HEAD"},
		)
		if err != nil {
			return fmt.Errorf("main has not all that is public: %w", err)
		}
	}
	branch, err := git.run(ctx, "git", "branch", "--show-current")
	if err != nil {
		return err
	}
	if branch != "main" {
		return fmt.Errorf("releases are made of main, not of %q", branch)
	}
	changed, err := git.run(ctx, "git", "status", "--porcelain")
	if err == nil && changed != "" {
		err = fmt.Errorf("not committed:\n%s", changed)
	}
	return err
}

// green is what git remembers of the gate, so that a second run need not wait for it.
const green = "refs/asynclock/green"

// isGreen runs the gate on a clone, unless it has passed with this commit.
func isGreen(ctx context.Context, git place, dir string) error {
	head, err := place{dir: dir}.run(ctx, "git", "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	if passed, err := git.run(ctx, "git", "rev-parse", "--verify", "--quiet", green); err == nil && passed == head {
		return nil
	}
	fmt.Println("the gate runs; this takes some ten minutes")
	if err := (place{dir: dir}).all(ctx, []string{"bash", ".ci/run"}, []string{"git", "stash", "-q", "--include-untracked"}); err != nil {
		return err
	}
	_, err = git.run(ctx, "git", "update-ref", green, head)
	return err
}

// pushed says how a release that is here becomes public. The root comes first, because it needs no other module, and because
// GitHub starts no workflow for more than three tags in one push. The others come all or none.
func pushed(ctx context.Context, tree, version string) error {
	others, err := place{dir: tree}.run(ctx, "git", "tag", "--list", "*/"+version)
	fmt.Println("git push --atomic origin main", version)
	fmt.Println("git push --atomic origin", strings.ReplaceAll(others, "\n", " "))
	return err
}
