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

// startRedis starts a redis-server that keeps nothing on disk, on a free port,
// and returns its address and how to stop it.
func startRedis(ctx context.Context) (address string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "asynclock-bench-")
	if err != nil {
		return "", nil, err
	}
	server := exec.CommandContext(ctx, "redis-server",
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir)
	if err := server.Start(); err != nil {
		return "", nil, errors.Join(fmt.Errorf("start redis-server (is it installed?): %w", err), os.RemoveAll(dir))
	}
	stop = func() {
		_ = server.Process.Kill()
		_ = server.Wait() // it says "killed", which we know
		_ = os.RemoveAll(dir)
	}
	address = "127.0.0.1:" + strconv.Itoa(port)
	if err := answer(ctx, address); err != nil {
		stop()
		return "", nil, err
	}
	return address, stop, nil
}

// answer waits until the server at address answers.
func answer(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		client, err := rueidis.NewClient(clientOption(address))
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

// clientOption is how the floor connects: as redisstore.Open does.
func clientOption(address string) rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress:       []string{address},
		DisableCache:      true,
		AlwaysPipelining:  true,
		PipelineMultiplex: -1,
	}
}
