// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// TestBench: it measures four things, and gives all keys back.
func TestBench(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	got := redis.run(t, "bench", "--json", "--for", "800ms", "--keys", "5", "--clients", "3")
	got.want(t, 0)
	var all struct {
		Measurements []struct {
			Name  string
			Count int
			P50   float64 `json:"p50_us"`
			P99   float64 `json:"p99_us"`
		}
	}
	if err := json.Unmarshal([]byte(got.stdout), &all); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range all.Measurements {
		if names = append(names, m.Name); m.Count == 0 || m.P50 <= 0 || m.P99 < m.P50 {
			t.Errorf("got %+v, want figures", m)
		}
	}
	if want := "alone handoff together renewing"; strings.Join(names, " ") != want {
		t.Errorf("got %q, want %s", names, want)
	}
	noKeys(t, redis.place)
	for _, args := range []string{"--keys 0", "--clients 0", "--for 1ms", "--for 2h"} {
		redis.run(t, append([]string{"bench"}, strings.Fields(args)...)...).want(t, 64, "--keys is 1 to 10000")
	}
}

// noKeys checks that nobody holds a key.
func noKeys(t *testing.T, at place) {
	t.Helper()
	if got := at.run(t, "ls"); strings.Count(got.stdout, "\n") != 1 {
		t.Errorf("got %s, want no keys", got.stdout)
	}
}

// TestBenchInterrupted: whoever interrupts it gets all keys back.
func TestBenchInterrupted(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	ctx, cancel := context.WithCancel(t.Context())
	running := redis.background(ctx, "bench", "--for", "8s")
	kit.Eventually(t, "a handoff", func() bool { return strings.Contains(redis.run(t, "ls").stdout, "/handoff") })
	cancel()
	finished(t, running).want(t, 130, "context canceled")
	noKeys(t, redis.place)
}

// TestBenchLeavesABusyServerAlone, unless it is told otherwise.
func TestBenchLeavesABusyServerAlone(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	locks := redis.newClient(t)
	for i := range 101 {
		if _, err := locks.Lock(t.Context(), fmt.Sprint("order:", i)); err != nil {
			t.Fatal(err)
		}
	}
	redis.run(t, "bench").want(t, 75, "more than 100 keys are in use here", "give --anyway")
	redis.run(t, "bench", "--anyway", "--for", "400ms", "--keys", "1", "--clients", "1").want(t, 0)
}
