// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/asynclock/asynclock-go/internal/test/servers/zkserver"
)

// playsZooKeeper reports whether the tests that are chosen by these arguments of go
// test may need a ZooKeeper. Without packages they are all.
func playsZooKeeper(job job, args []string) bool {
	_, packages := split(args)
	needs := func(a string) bool {
		return a == "./..." || strings.HasPrefix(a, "./store/...") ||
			strings.HasPrefix(a, "./store/zk") || strings.HasPrefix(a, "./internal/test/interop") || strings.HasPrefix(a, "./internal/test/servers/zk")
	}
	return job != jobTest || len(packages) == 0 || slices.ContainsFunc(packages, needs)
}

// missingZooKeeper says what is not here of what a ZooKeeper takes.
func missingZooKeeper(plan plan) []need {
	if !plan.zooKeeper || zkserver.Find() == nil {
		return nil
	}
	return []need{{"ZooKeeper, as Debian has it, with Java", []string{zkserver.Package}}}
}

// startZooKeeper starts one that stands alone. The tests start ensembles
// themselves, since they kill them.
func startZooKeeper(ctx context.Context, dir string) (*zkserver.Server, error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	return zkserver.Start(ctx, filepath.Join(dir, "zookeeper"), ports[0])
}

// zooKeeperEnv is what the tests learn about it.
func zooKeeperEnv(s *zkserver.Server) string { return "ASYNCLOCK_ZOOKEEPER=" + s.Addr }
