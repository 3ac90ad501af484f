// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// A command is how to run one: its surroundings, not its name.
type command struct {
	dir            string
	env            []string
	stdout, stderr io.Writer
	grace          time.Duration // to end in, after it was told to
}

// run runs a program and everything it starts as one process group, with no
// standard input, and returns its exit code. When ctx ends, the group gets the
// signal that ended ctx, and after the grace time SIGKILL.
func (c command) run(ctx context.Context, name string, args ...string) (int, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.dir, c.env, c.stdout, c.stderr
	cmd.SysProcAttr = groupAttr()
	cmd.WaitDelay = c.grace
	cmd.Cancel = func() error {
		sig := syscall.SIGTERM
		if s := stopOrder(ctx); s != nil {
			sig = s.signal
		}
		return signalGroup(cmd.Process, sig)
	}
	err := cmd.Run()
	if s := stopOrder(ctx); s != nil {
		if cmd.Process != nil {
			_ = signalGroup(cmd.Process, syscall.SIGKILL) // most often nobody is left
		}
		return s.exitCode(), s
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() >= 0 {
		return exit.ExitCode(), nil
	}
	if err != nil {
		return 1, fmt.Errorf("%s: %w", name, err)
	}
	return 0, nil
}

// output returns what a short command says, without the space around it.
func output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
