// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/asynclock/asynclock-go/elect"
	"github.com/asynclock/asynclock-go/internal/test/kit"
)

func TestElectRunsTheCommandWhereItLeads(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	locks := redis.newClient(t)
	redis.run(t, "elect", "k", "--", bin, "exit", "7").want(t, 7)

	file := filepath.Join(t.TempDir(), "first")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	leads := redis.background(ctx, "elect", "k", "--value", "10.0.0.7", "--", bin, "sleep", file)
	exists(t, file)
	leader, err := elect.Current(t.Context(), locks, "k")
	if err != nil || leader.Token == 0 || string(leader.Value) != "10.0.0.7" {
		t.Errorf("Current: got %+v, %v; want a leader with its value", leader, err)
	}
	waits := redis.background(ctx, "elect", "k", "--", bin, "exit", "8")
	kit.Eventually(t, "the other candidate waits", func() bool {
		info, err := locks.Inspect(t.Context(), "k")
		return err == nil && info.Waiters == 1
	})
	cancel()
	if got := finished(t, leads); got.code == 0 {
		t.Errorf("the one that led: got exit code 0, want that of an end by a signal")
	}
	if got := finished(t, waits); got.code == 0 {
		t.Errorf("the one that waited: got exit code 0, want another")
	}
}

// A leadership that is taken by force is lost, and the command runs again when it is won again.
func TestElectCampaignsAgainAfterALoss(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	locks := redis.newClient(t)
	first := filepath.Join(t.TempDir(), "file")
	leads := redis.background(t.Context(), "elect", "k", "--", "sh", "-c", `test -e "`+first+`" && exit 9; touch "`+first+`"; exec sleep 600`)
	exists(t, first)
	if held, err := locks.ForceUnlock(t.Context(), "k", 0); !held || err != nil {
		t.Fatalf("ForceUnlock: got %v, %v; want it taken", held, err)
	}
	finished(t, leads).want(t, 9, "ending the command")
}

func TestElectSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	redis.run(t, "elect", "k", "command").want(t, 64, "give one KEY, and after -- the command to run")
	redis.run(t, "elect", "k", "--grace", "-1s", "--", "true").want(t, 64, "--grace is negative")
	redis.run(t, "elect", "k", "--ttl", "1ns", "--", "true").want(t, 64, "TTL")
	redis.run(t, "elect", "k", "--", "no-such-command-anywhere").want(t, 127, "command not found")
}
