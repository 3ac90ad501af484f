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
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, redistest.Leftover()...) }

func redisServer(t *testing.T) string {
	t.Helper()
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		kit.Skip(t, err.Error())
	}
	return bin
}

// That they can be used is what start itself checks.
func TestServersComeAndGo(t *testing.T) {
	t.Parallel()
	s, err := start(t.Context(), redisServer(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	var names []string
	for _, v := range s.env() {
		name, _, _ := strings.Cut(v, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{"ASYNCLOCK_CLUSTER_URL", "ASYNCLOCK_MYSQL_URL", "ASYNCLOCK_POSTGRES_URL", "ASYNCLOCK_REDIS_URL", "ASYNCLOCK_REQUIRE", "ASYNCLOCK_SENTINEL_URL"}
	if !slices.Equal(names, want) {
		t.Errorf("got variables %q, want %q", names, want)
	}
	if got := s.ended(); got != nil {
		t.Errorf("ended by themselves: %q, want none", got)
	}

	s.standalone.stop()
	if got := s.ended(); len(got) != 1 || !strings.HasPrefix(got[0], "standalone") {
		t.Errorf("ended by themselves: %q, want the standalone server", got)
	}
	s.stop()
	for _, one := range s.all {
		if !one.hasEnded() {
			t.Errorf("%s runs after stop", one.name)
		}
	}
}

func TestTakenPortIsReported(t *testing.T) {
	t.Parallel()
	bin, dir := redisServer(t), t.TempDir()
	ports, err := freePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	first, err := startServer(bin, dir, "first", ports[0], inMemory()...)
	if err != nil {
		t.Fatal(err)
	}
	defer first.stop()
	if err := await(t.Context(), "first", first.answers); err != nil {
		t.Fatal(err)
	}
	second, err := startServer(bin, dir, "second", ports[0], inMemory()...)
	if err != nil {
		t.Fatal(err)
	}
	defer second.stop()
	err = await(t.Context(), "second", second.answers)
	if !errors.Is(err, errEnded) || !strings.Contains(err.Error(), "in use") {
		t.Errorf("got %v, want the end of the server and its reason", err)
	}
}

func TestStoppedStartLeavesNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	if s, err := start(ctx, redisServer(t), dir); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v, want context.Canceled", s, err)
	}
}

func TestFreePorts(t *testing.T) {
	t.Parallel()
	ports, err := freePorts(50)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ports)
	if got := len(slices.Compact(ports)); got != 50 {
		t.Errorf("got %d different ports, want 50", got)
	}
	if ports[0] < firstPort || ports[len(ports)-1] > lastPort {
		t.Errorf("got %d to %d, want %d to %d", ports[0], ports[len(ports)-1], firstPort, lastPort)
	}
}
