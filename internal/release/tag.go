// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// tag releases what a clone has at HEAD: a commit on its branch with the changelog's heading, and a commit
// beside the branch, which all tags are of. There the modules require each other by version.
func tag(ctx context.Context, clone, version string) ([]string, error) {
	git := place{dir: clone}
	if err := heading(filepath.Join(clone, "CHANGELOG.md"), version, time.Now()); err != nil {
		return nil, err
	}
	waves, err := modules(clone)
	if err != nil {
		return nil, err
	}
	err = git.all(ctx,
		[]string{"git", "commit", "-q", "-m", "changelog: " + version, "CHANGELOG.md"},
		[]string{"git", "checkout", "-q", "--detach"},
		[]string{"git", "commit", "-q", "--allow-empty", "-m", "release " + version + "\n\nThe modules require each other by version. No branch has this commit."})
	if err != nil {
		return nil, err
	}
	sums := map[string][]string{}
	var tags, paths []string
	for i, wave := range waves {
		for _, m := range wave {
			if err := m.pin(clone, version, sums); err != nil {
				return nil, err
			}
			tags, paths = append(tags, m.tag(version)), append(paths, m.path()+"@"+version)
		}
		if err := git.all(ctx, []string{"git", "add", "-u", "*go.mod", "*go.sum"}, []string{"git", "commit", "-q", "--amend", "--no-edit", "--allow-empty"}); err != nil {
			return nil, err
		}
		for _, name := range tags { // a later commit changes nothing in the modules of earlier ones
			if _, err := git.run(ctx, "git", "tag", "-f", "-a", "-m", "asynclock "+version, name); err != nil {
				return nil, err
			}
		}
		if i == len(waves)-1 {
			break
		}
		if sums, err = download(ctx, clone, paths); err != nil {
			return nil, err
		}
	}
	_, err = git.run(ctx, "git", "checkout", "-q", "-")
	return tags, err
}

// download returns the lines in go.sum of modules that a clone has tags of. The go command makes them, as it will
// from the public repository.
func download(ctx context.Context, clone string, modules []string) (map[string][]string, error) {
	cache, err := os.MkdirTemp("", "asynclock-release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(cache)
	said, err := fetch(ctx, clone, cache, modules)
	if err != nil {
		return nil, err
	}
	sums := map[string][]string{}
	for dec := json.NewDecoder(strings.NewReader(said)); dec.More(); {
		var m struct{ Path, Version, Sum, GoModSum string }
		if err := dec.Decode(&m); err != nil {
			return nil, err
		}
		sums[m.Path] = []string{
			fmt.Sprintf("%s %s %s\n", m.Path, m.Version, m.Sum),
			fmt.Sprintf("%s %s/go.mod %s\n", m.Path, m.Version, m.GoModSum),
		}
	}
	return sums, nil
}

// fetch has go get modules from a clone's tags into a module cache, whose folder cache/download then is a proxy.
func fetch(ctx context.Context, clone, cache string, modules []string) (string, error) {
	empty, err := os.MkdirTemp("", "asynclock-release-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(empty)
	env := append(goEnv(cache, "direct"), "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=url.file://"+clone+".insteadOf", "GIT_CONFIG_VALUE_0=https://"+base)
	return place{dir: empty, env: env}.run(ctx, append([]string{"go", "mod", "download", "-json"}, modules...)...)
}
