// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// startRedis starts a redis-server that keeps nothing on disk, on a free port. It returns the
// server's address and a function that stops it.
func startRedis(ctx context.Context) (address string, stop func(), err error) {
	return inDir(func(dir string) (string, func(), error) {
		r, err := servers.StartRedis(ctx, servers.Config{Dir: dir})
		if err != nil {
			return "", nil, err
		}
		return r.Addr, r.Close, nil
	})
}

// startCluster is startRedis for a Redis Cluster of three masters without replicas. The
// address is that of one of them.
func startCluster(ctx context.Context) (address string, stop func(), err error) {
	return inDir(func(dir string) (string, func(), error) {
		const usual = 15 * time.Second // what is measured may keep a node busy
		d, err := servers.StartCluster(ctx, servers.Config{Dir: dir, Patience: usual}, 3, 0)
		if err != nil {
			return "", nil, err
		}
		return d.Nodes[0].Addr, d.Close, nil
	})
}

// inDir starts something in a directory of its own, which is removed when it is stopped.
func inDir(start func(dir string) (string, func(), error)) (address string, stop func(), err error) {
	dir, err := os.MkdirTemp("", "asynclock-bench-")
	if err != nil {
		return "", nil, err
	}
	address, end, err := start(dir)
	if err != nil {
		os.RemoveAll(dir)
		return "", nil, err
	}
	return address, func() {
		end()
		os.RemoveAll(dir)
	}, nil
}
