// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/internal/test/servers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, redistest.Leftover()...) }

// needServers skips a test where a server is not installed.
func needServers(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		kit.Skip(t, err.Error())
	}
	for _, n := range append(missingDatabases(), missingZooKeeper(plan{zooKeeper: true})...) {
		kit.Skip(t, n.what+" is missing")
	}
}

// That they can be used is what start itself checks.
func TestServersComeAndGo(t *testing.T) {
	t.Parallel()
	needServers(t)
	targets, err := start(t.Context(), starters(plan{zooKeeper: true}), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer stop(targets)
	var names []string
	for _, v := range env(targets) {
		name, _, _ := strings.Cut(v, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{
		"ASYNCLOCK_CLUSTER_URL", "ASYNCLOCK_MYSQL_URL", "ASYNCLOCK_POSTGRES_URL", "ASYNCLOCK_REDIS_URL",
		"ASYNCLOCK_REQUIRE", "ASYNCLOCK_SENTINEL_URL", "ASYNCLOCK_ZOOKEEPER",
	}
	if !slices.Equal(names, want) {
		t.Errorf("got variables %q, want %q", names, want)
	}
	if got := died(targets); got != nil {
		t.Errorf("ended by themselves: %q, want none", got)
	}

	targets[0].nodes[0].Kill()
	if got := died(targets); len(got) != 1 || !strings.HasPrefix(got[0], "standalone") {
		t.Errorf("ended by themselves: %q, want the standalone server", got)
	}
	stop(targets)
	for _, target := range targets {
		for _, s := range target.servers() {
			if !s.Ended() {
				t.Errorf("%s runs after stop", s.Name)
			}
		}
	}
}

func TestStoppedStartLeavesNothing(t *testing.T) {
	t.Parallel()
	needServers(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	targets, err := start(ctx, starters(plan{}), t.TempDir())
	if !errors.Is(err, context.Canceled) || targets != nil {
		t.Errorf("got %v, %v, want context.Canceled", targets, err)
	}
}

// A target that can't be started stops all others.
func TestFailedStartLeavesNothing(t *testing.T) {
	t.Parallel()
	needServers(t)
	broken := errors.New("broken")
	var r *servers.Redis
	started := make(chan struct{})
	_, err := start(t.Context(), []starter{
		func(ctx context.Context, dir string) (*target, error) {
			defer close(started)
			found, err := startAlone(ctx, dir)
			if err == nil {
				r = found.nodes[0]
			}
			return found, err
		},
		func(context.Context, string) (*target, error) {
			<-started
			return nil, broken
		},
	}, t.TempDir())
	if !errors.Is(err, broken) || r == nil || !r.Ended() {
		t.Errorf("got %v, want %v and the other server stopped", err, broken)
	}
}
