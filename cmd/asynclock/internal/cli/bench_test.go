// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// TestBench: it measures four things, and gives all keys back.
func TestBench(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	got := redis.run(t, "bench", "--json", "--for", "2s", "--keys", "5", "--clients", "3")
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
	if got := len(redis.Keys()); got > 1+1+3+1+5+4 { // counters of the keys, and what the store has once
		t.Errorf("got %q, want a counter for each key", redis.Keys())
	}
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
	for i := range 101 { // one by one: all at once are too much for a miniredis on a busy machine
		if _, err := locks.Lock(t.Context(), fmt.Sprint("order:", i)); err != nil {
			t.Fatal(err)
		}
	}
	redis.run(t, "bench").want(t, 75, "more than 100 keys are in use here", "give --anyway")
	redis.run(t, "bench", "--anyway", "--for", "400ms", "--keys", "1", "--clients", "1").want(t, 0)
}

// TestBenchOfASlowServer: a rate is of the time that passed, and not of what was planned. After an error, the measurements
// from before it are printed.
func TestBenchOfASlowServer(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	redis.Server().SetPreHook(func(c *server.Peer, command string, args ...string) bool {
		switch {
		case strings.Contains(strings.Join(args, " "), "/held/"):
			c.WriteError("NOPERM no")
			return true
		case strings.HasPrefix(command, "EVAL") && strings.Contains(strings.Join(args, " "), "/alone"):
			time.Sleep(150 * time.Millisecond)
		}
		return standalone(c, command)
	})
	got := redis.run(t, "bench", "--json", "--for", "400ms", "--keys", "1", "--clients", "1")
	got.want(t, 77, "renewing: ")
	if strings.Count(got.stdout, "name") != 3 || !regexp.MustCompile(`"alone","count":1,"per_second":[0-3]\.`).MatchString(got.stdout) {
		t.Errorf("got %s, want three measurements, and one of alone in at least 300 ms", got.stdout)
	}
}

// TestBenchOfZooKeeper, which refuses a TTL that is shorter than its sessions.
func TestBenchOfZooKeeper(t *testing.T) {
	t.Parallel()
	at := place{"zk://" + kit.Require(t, "ASYNCLOCK_ZOOKEEPER")}
	at.run(t, "bench", "--anyway", "--for", "400ms", "--keys", "2", "--clients", "1").want(t, 0)
}
