// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/servers/zkserver"
)

func TestWhoNeedsAZooKeeper(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		job  job
		args string
		want bool
	}{
		{jobTest, "", true},
		{jobTest, "-run Unlock", true},
		{jobTest, "./...", true},
		{jobTest, ".", false},
		{jobTest, "./store/...", true},
		{jobTest, "-v ./store/zkstore", true},
		{jobTest, "./internal/test/interop/zookeeper", true},
		{jobTest, "./asynclock ./internal/test/servers/zkserver", true},
		{jobTest, "./asynclock", false},
		{jobTest, "./store/redisstore ./pubsub", false},
		{jobServe, "", true},
		{jobCommand, "./asynclock", true},
	} {
		if got := playsZooKeeper(c.job, strings.Fields(c.args)); got != c.want {
			t.Errorf("playsZooKeeper(%v, %q) = %v, want %v", c.job, c.args, got, c.want)
		}
	}
}

func TestAZooKeeperComesAndGoes(t *testing.T) {
	t.Parallel()
	if err := zkserver.Find(); err != nil {
		kit.Skip(t, "ZooKeeper is missing: "+err.Error())
	}
	s, err := startZooKeeper(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Kill()
	if got, want := zooKeeperEnv(s), "ASYNCLOCK_ZOOKEEPER=127.0.0.1:"; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q and a port", got, want)
	}
}
