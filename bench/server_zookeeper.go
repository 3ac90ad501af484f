// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"

	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// startZooKeeper starts a server with its data in memory, since Redis writes nothing to disk either.
// It compiles as servers do, unlike those of tests.
func startZooKeeper(ctx context.Context) (address string, stop func(), err error) {
	if err := servers.FindZooKeeper(); err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp(memoryDir(), "asynclock-bench-")
	if err != nil {
		return "", nil, err
	}
	z, err := servers.StartZooKeeper(ctx, dir, "-XX:TieredStopAtLevel=4", "-Xmx512m")
	if err != nil {
		os.RemoveAll(dir)
		return "", nil, err
	}
	return z.Addr, func() {
		z.Kill()
		os.RemoveAll(dir)
	}, nil
}
