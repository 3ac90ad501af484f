// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// beside runs processes of the last release and of this tree against one server, as during a deployment.
func (c comparison) beside(ctx context.Context) error {
	if os.Getenv("ASYNCLOCK_REDIS_URL") == "" {
		fmt.Println("not run beside the last release: it needs ASYNCLOCK_REDIS_URL")
		return nil
	}
	program := filepath.Join(c.tree, "internal/release/testdata/beside/main.go")
	var commands []string
	for name, tree := range map[string]string{"old": c.old, "new": c.tree} {
		command := filepath.Join(c.old, "beside-"+name)
		if _, err := (place{dir: tree, env: alone}).run(ctx, "go", "build", "-o", command, program); err != nil {
			return err
		}
		commands = append(commands, command, command)
	}
	ended := make(chan error)
	for _, command := range commands { // each ends by itself after two minutes
		go func() {
			_, err := place{dir: c.old}.run(ctx, command)
			ended <- err
		}()
	}
	var all error
	for range commands {
		all = errors.Join(all, <-ended)
	}
	if all == nil {
		fmt.Println("two processes of the last release and two of this tree have taken turns: writers, readers, permits")
	}
	return all
}
