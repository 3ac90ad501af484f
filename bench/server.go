// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// startRedis starts a redis-server that keeps nothing on disk, on a free port. It returns the
// server's address and a function that stops it.
func startRedis(ctx context.Context) (address string, stop func(), err error) {
	ports, err := freePorts(1)
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "asynclock-bench-")
	if err != nil {
		return "", nil, err
	}
	stop, err = startServer(exec.CommandContext(ctx, "redis-server",
		"--port", ports[0], "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir), dir)
	if err != nil {
		return "", nil, err
	}
	address = "127.0.0.1:" + ports[0]
	if err := answer(ctx, address); err != nil {
		stop()
		return "", nil, err
	}
	return address, stop, nil
}

// startServer starts a server whose files are in dir.
func startServer(server *exec.Cmd, dir string) (stop func(), err error) {
	if err := server.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s (is it installed?): %w", server.Args[0], err), os.RemoveAll(dir))
	}
	return func() {
		_ = server.Process.Kill()
		_ = server.Wait() // the error is "killed", as expected
		_ = os.RemoveAll(dir)
	}, nil
}

// freePorts returns n ports of 127.0.0.1 on which nobody listens.
func freePorts(n int) (ports []string, err error) {
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = listener.Close() }() // after the last one is opened, so that they differ
		ports = append(ports, strconv.Itoa(listener.Addr().(*net.TCPAddr).Port))
	}
	return ports, nil
}

// answer waits until the server at address answers.
func answer(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		client, err := rueidis.NewClient(clientOption(world{redis: address}))
		if err == nil {
			client.Close()
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("redis-server at %s does not answer: %w", address, err)
		}
	}
}
