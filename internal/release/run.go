// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// A place is a folder in which commands run, with variables of their own.
type place struct {
	dir  string
	env  []string
	tool string // the go command; empty: the one in PATH
}

// run runs a command and returns what it prints. An error has that, too, and what the command says of it.
func (p place) run(ctx context.Context, command ...string) (string, error) {
	name := command[0]
	if name == "go" && p.tool != "" {
		name = p.tool
	}
	cmd := exec.CommandContext(ctx, name, command[1:]...) //nolint:gosec // commands of this program
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), p.env...)
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, 10*time.Second
	var said, wrong strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &wrong
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", strings.Join(command, " "), err, said.String(), wrong.String())
	}
	return strings.TrimSpace(said.String()), nil
}

// all runs commands one after the other, up to one that fails.
func (p place) all(ctx context.Context, commands ...[]string) error {
	for _, c := range commands {
		if _, err := p.run(ctx, c...); err != nil {
			return err
		}
	}
	return nil
}

// goEnv is the environment in which the go command makes modules: as one without a workspace, and with a
// module cache of its own, that can be deleted.
func goEnv(cache, proxy string) []string {
	return []string{"GOWORK=off", "GOSUMDB=off", "GOFLAGS=-modcacherw -trimpath", "GOMODCACHE=" + cache, "GOPROXY=" + proxy, "GOENV=off", "GOPRIVATE=", "GONOPROXY="}
}

// proxies returns where modules of others are, beginning with those that this machine has.
func proxies(ctx context.Context) (string, error) {
	said, err := place{}.run(ctx, "go", "env", "GOMODCACHE", "GOPROXY")
	cache, rest, ok := strings.Cut(said, "\n")
	if err == nil && !ok {
		err = errors.New("go env has not said where modules come from")
	}
	return "file://" + cache + "/cache/download," + rest, err
}
