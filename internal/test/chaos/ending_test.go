// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/proc"
	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// Each worker that does not stop is killed and told of, not only the first.
func TestWorkersThatDoNotStop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, err := history.Create(dir, "x")
	if err != nil {
		t.Fatal(err)
	}
	r := &run{file: file}
	for _, name := range []string{"worker 1", "worker 2"} {
		p, err := proc.Start(exec.Command("sh", "-c", "trap '' QUIT; while :; do sleep 1; done"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Kill() })
		r.seats = append(r.seats, &seat{name: name, process: p})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	done := make(chan struct{})
	go func() { // ends with the processes
		defer close(done)
		r.awaitWorkers(ctx)
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("they are still waited for")
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	records, err := history.ReadDir(dir)
	if err != nil || len(records) != 2 || records[1].Error != "worker 2 does not stop" {
		t.Errorf("got %v, %v, want both", records, err)
	}
}

// TestLeftoversAreFound: the look at the servers in the end sees what is there.
func TestLeftoversAreFound(t *testing.T) {
	if os.Getenv(shortRuns) != "1" {
		t.Skip("left to .ci/run nightly chaos, which sets " + shortRuns)
	}
	s, err := startSite(t.Context(), standalone, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	want := func(want ...string) {
		t.Helper()
		got, err := s.remains(t.Context())
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	put := func(words ...string) {
		t.Helper()
		if err := s.Nodes[0].Do(t.Context(), words...); err != nil {
			t.Fatal(err)
		}
	}
	want()
	put("SET", "others:{b00}:k:l", "x")
	put("SET", prefix+":{b00}:k:f", "x", "EX", "100")
	put("ZADD", prefix+":{b00}:k:x", "1", "x")
	put("EXPIRE", prefix+":{b00}:k:x", "100")
	put("SET", prefix+":{b00}:k:l", "1795467236", "EX", "100")
	put("SET", prefix+":{b00}:k:n", "x", "EX", "100")
	want()
	put("SET", prefix+":{b00}:j:l", "1795467236 owner inbox", "EX", "100")
	if got, err := s.remains(t.Context()); err != nil || len(got) != 1 || !strings.HasPrefix(got[0], prefix+":{b00}:j:l, TTL ") {
		t.Errorf("got %q, %v, want the holder's record", got, err)
	}
	put("DEL", prefix+":{b00}:j:l")
	put("SET", prefix+":{b00}:j:f", "x")
	want(prefix + ":{b00}:j:f, TTL -1 ms")
	put("DEL", prefix+":{b00}:j:f")
	put("HSET", prefix+":{b00}:k:w", "x", "x")
	want(prefix + ":{b00}:k:w, TTL -1 ms")
	put("DEL", prefix+":{b00}:k:w")

	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.Nodes[0].Addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	subscribed := make(chan struct{})
	ctx := rueidis.WithOnSubscriptionHook(t.Context(), func(rueidis.PubSubSubscription) { close(subscribed) })
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with ctx
		_ = client.Receive(ctx, client.B().Subscribe().Channel(prefix+":c:1").Build(), func(rueidis.PubSubMessage) {})
	}()
	<-subscribed
	want(prefix + ":c:1")
}
