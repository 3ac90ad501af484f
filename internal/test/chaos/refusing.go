// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// Servers that run, and refuse everything. A client library has to understand that on every connection.

// refusesSoon makes a server refuse everything when a script has taken half a second, not five.
var refusesSoon = []string{"--lua-time-limit", "500"}

// runScript keeps a server busy by a script of somebody else's: BUSY.
func (b *blow) runScript() error {
	ctx, d := context.WithoutCancel(b.ctx), b.between(50, 400)
	node, err := b.node(ctx)
	if err != nil {
		return err
	}
	// By redis-cli, because a script holds up its own connection.
	script := exec.CommandContext(ctx, "redis-cli", "-p", node.Port(), "EVAL", "while true do end", "0")
	if err := script.Start(); err != nil {
		return err
	}
	b.wait(d)
	ended := make(chan error, 1)
	go func() { ended <- script.Wait() }() // ends when the script is killed
	for {
		_ = node.Do(ctx, "SCRIPT", "KILL") // fails if the script has not begun
		select {
		case err := <-ended:
			if _, killed := errors.AsType[*exec.ExitError](err); killed {
				return nil
			}
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// followNobody makes a server the replica of one that is not there: MASTERDOWN.
func (b *blow) followNobody() error {
	ctx, d := context.WithoutCancel(b.ctx), b.between(10, 200)
	node := b.store.Nodes[0]
	if err := node.Do(ctx, "CONFIG", "SET", "replica-serve-stale-data", "no"); err != nil {
		return err
	}
	if err := node.Do(ctx, "REPLICAOF", "127.0.0.1", "1"); err != nil {
		return err
	}
	b.wait(d)
	return node.Do(ctx, "REPLICAOF", "NO", "ONE")
}

// readsFor is how long a server reads its data after a restart, about.
const readsFor = 5 * time.Second

// restartSlowly kills a server, and starts it so that it reads its data for a while: LOADING.
func (b *blow) restartSlowly() error {
	ctx, node := context.WithoutCancel(b.ctx), b.store.Nodes[0]
	commands, err := entries(ctx, node)
	if err != nil {
		return err
	}
	node.Kill()
	args := node.Args
	defer func() { node.Args = args }()
	node.Args = append(slices.Clone(args), "--key-load-delay", strconv.FormatInt(max(1, readsFor.Microseconds()/commands), 10))
	return node.Restart(ctx)
}

// entries is how many commands a server's file has, roughly.
func entries(ctx context.Context, node *servers.Redis) (int64, error) {
	const size = 150 // bytes of a command, usually
	facts, err := node.Facts(ctx, "INFO", "persistence")
	if err != nil {
		return 0, err
	}
	bytes, err := strconv.ParseInt(facts["aof_current_size"], 10, 64)
	return max(1, bytes/size), err
}
