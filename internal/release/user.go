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
)

// user returns a folder outside the copy, in which the go command gets our modules by their tags alone.
func (r *rehearsal) user(ctx context.Context, name string, modules ...string) (place, error) {
	served := filepath.Join(r.dir, "served")
	if _, err := fetch(ctx, r.copy.dir, served, modules); err != nil {
		return place{}, err
	}
	u := place{
		dir: filepath.Join(r.dir, "users", name),
		env: goEnv(filepath.Join(r.dir, "cache"), "file://"+served+"/cache/download,"+r.others),
	}
	return u, os.MkdirAll(u.dir, 0o700)
}

// program is where README's first one is kept.
const program = "internal/test/recipes/first/example_test.go"

// use writes programs with a module: the examples of its packages, which are those of somebody outside.
func (r *rehearsal) use(ctx context.Context, m *module, version string) error {
	u, err := r.user(ctx, "of-"+strings.NewReplacer("/", "-", ".", "root").Replace(m.dir), m.with(version)...)
	if err != nil {
		return err
	}
	if !r.short { // with the oldest Go that is promised, from where the sum database is not off
		root, err := place{env: []string{"GOTOOLCHAIN=go" + m.file.Go.Version}}.run(ctx, "go", "env", "GOROOT")
		if err != nil {
			return err
		}
		u.tool, u.env = filepath.Join(root, "bin", "go"), append(u.env, "GOTOOLCHAIN=local")
	}
	needed, err := r.write(ctx, m, u.dir)
	if err != nil {
		return err
	}
	err = u.all(ctx,
		[]string{"go", "mod", "init", "example.com/user"},
		[]string{"go", "get", m.path() + "@" + version},
		[]string{"go", "mod", "tidy"},
		[]string{"go", "vet", "./..."},
	)
	if err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(u.dir, "go.mod"))
	if err != nil {
		return err
	}
	ours := regexp.MustCompile(`(?m)^.*`+regexp.QuoteMeta(base)+`.*$`).FindAllString(string(mod), -1)
	r.say("%s: with Go %s, its user's go.mod has %s", m.dir, m.file.Go.Version, strings.ReplaceAll(strings.Join(ours, ";"), "\t", ""))
	if strings.Contains(string(mod), "replace") {
		return errors.New("and it has a replace")
	}
	if needed != "" {
		r.say("%s: the examples compile; to run they need %s", m.dir, needed)
		return nil
	}
	said, err := u.run(ctx, "go", "test", "./...")
	r.say("%s: go test says\n%s", m.dir, said)
	return err
}

var variables = regexp.MustCompile(`"(ASYNCLOCK_[A-Z_]+)"`)

// write copies the examples of a module's packages, each into a package of its own. It returns a variable that they
// need, and that is not set.
func (r *rehearsal) write(ctx context.Context, m *module, dir string) (needed string, err error) {
	listed, err := place{dir: filepath.Join(r.copy.dir, m.dir)}.run(ctx, "git", "ls-files", "*example*_test.go")
	if err != nil {
		return "", err
	}
	files := strings.Fields(listed)
	if r.short {
		files = nil
	}
	if m.dir == "." {
		files = append(files, program)
	}
	for _, file := range files {
		if folder := filepath.ToSlash(filepath.Dir(file)); !isReleased(folder) && file != program || r.isNested(m, folder) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(r.copy.dir, m.dir, file))
		if err != nil {
			return "", err
		}
		for _, v := range variables.FindAllSubmatch(text, -1) {
			if os.Getenv(string(v[1])) == "" {
				needed = string(v[1])
			}
		}
		to := filepath.Join(dir, "of", file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, text, 0o600)); err != nil {
			return "", err
		}
	}
	return needed, nil
}

// isNested reports whether a folder of a module belongs to another one.
func (r *rehearsal) isNested(m *module, folder string) bool {
	for ; folder != "."; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(r.copy.dir, m.dir, folder, "go.mod")); err == nil {
			return true
		}
	}
	return false
}

// install installs the command as its users do, which takes a module without replace.
func (r *rehearsal) install(ctx context.Context, m *module) error {
	path := m.path() + "@v0.1.0"
	u, err := r.user(ctx, "command", m.with("v0.1.0")...)
	if err != nil {
		return err
	}
	u.env = append(u.env, "GOBIN="+u.dir)
	if _, err := u.run(ctx, "go", "install", path); err != nil {
		return err
	}
	said, err := u.run(ctx, filepath.Join(u.dir, "asynclock"), "version")
	r.say("the command is installed, and its version says\n%s", said)
	if err == nil && !strings.Contains(said, "v0.1.0") {
		err = errors.New("which is not its version")
	}
	return err
}

// tidy checks that go mod tidy would leave a module as its tag has it, go.sum included.
func (r *rehearsal) tidy(ctx context.Context, m *module) error {
	u, err := r.user(ctx, "tidy", m.with("v0.1.0")...)
	if err != nil {
		return err
	}
	if _, err := r.copy.run(ctx, "git", "checkout", "-q", "v0.1.0"); err != nil {
		return err
	}
	u.dir = filepath.Join(r.copy.dir, m.dir)
	_, err = u.run(ctx, "go", "mod", "tidy", "-diff")
	_, back := r.copy.run(ctx, "git", "checkout", "-q", "main")
	return errors.Join(err, back)
}

// update has the user of sqlstore update the root alone, and then everything.
func (r *rehearsal) update(ctx context.Context, version, want string) error {
	u, err := r.user(ctx, "of-store-sqlstore", base+"@"+version, base+"/store/sqlstore@"+version)
	if err != nil {
		return err
	}
	if _, err := u.run(ctx, "go", "get", base+"@"+version); err != nil {
		return err
	}
	got := "builds"
	if _, err := u.run(ctx, "go", "vet", "./..."); err != nil {
		got = "does not build"
		fmt.Println(err)
	}
	r.say("who has an older sqlstore and updates the root to %s: the program %s", version, got)
	if got != want {
		return fmt.Errorf("it was to say: %s", want)
	}
	err = u.all(ctx, []string{"go", "get", base + "/store/sqlstore@" + version}, []string{"go", "vet", "./..."})
	if err == nil {
		r.say("who updates sqlstore to %s, too: the program builds", version)
	}
	return err
}
