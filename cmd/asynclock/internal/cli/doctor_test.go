// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// wantFindings expects these verdicts and checks among those of the output, in this order, and the exit code of the worst
// verdict. The store has findings of its own between them.
func (r result) wantFindings(t *testing.T, want ...string) {
	t.Helper()
	code, rest := 0, want
	for line := range strings.Lines(r.stdout) {
		words := strings.Fields(line)
		if strings.HasPrefix(line, " ") || len(words) < 2 {
			continue
		}
		code = max(code, map[string]int{"warn": 1, "fail": 2}[words[0]])
		found := words[0] + " " + words[1]
		if found == "note answers" { // a busy machine is slow for moments
			found = "ok answers"
		}
		if len(rest) > 0 && found == rest[0] {
			rest = rest[1:]
		}
	}
	if len(rest) > 0 || r.code != code || r.stderr != "" {
		t.Errorf("got code %d, stdout %s and stderr %s; want code %d and %v", r.code, r.stdout, r.stderr, code, want)
	}
}

func TestDoctorOfAServerThatIsFit(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	redis.hold(t, "k")
	got := redis.run(t, "doctor", "--ttl", "1h")
	got.wantFindings(t, "ok answers", "ok lock", "ok messages", "ok locks")
	if !strings.Contains(got.stdout, "  1 key is held.\n") {
		t.Errorf("got %s, want the key that is held", got.stdout)
	}
	if got := redis.run(t, "ls", "--json"); strings.Count(got.stdout, "\n") != 1 {
		t.Errorf("got %s left, want k alone", got.stdout)
	}
}

// TestDoctorOfAServerThatCannotBeOpened says so on stdout, as a finding, with what to do.
func TestDoctorOfAServerThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	locked := startRedis(t)
	locked.RequireUserAuth("user", "another")
	got := place{"redis://user:hunter2@" + locked.Addr()}.run(t, "why", "k")
	got.want(t, 2)
	text := "fail  server  The store can't be opened: redisstore: open: denied by the store: "
	if !strings.HasPrefix(got.stdout, text) || !strings.Contains(got.stdout, "\n              fix: ") {
		t.Errorf("got %s, want %s, and a fix", got.stdout, text)
	}
	if strings.Contains(got.stdout, "hunter2") {
		t.Errorf("the password shows: %s", got.stdout)
	}
	got = place{"redis://127.0.0.1:1"}.run(t, "doctor", "--json")
	got.want(t, 2)
	if f := object(t, got.stdout, "check", "verdict", "fact", "fix"); f["verdict"] != "fail" || f["check"] != "server" {
		t.Errorf("got %s, want that the server fails", got.stdout)
	}
}

// TestDoctorOfAServerThatWasSilent: it has recovered when the store is open, but it was silent.
func TestDoctorOfAServerThatWasSilent(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	var silent sync.Once
	redis.Server().SetPreHook(func(c *server.Peer, command string, _ ...string) bool {
		silent.Do(func() { time.Sleep(1200 * time.Millisecond) })
		return standalone(c, command)
	})
	got := redis.run(t, "doctor", "--ttl", "1h")
	got.wantFindings(t, "warn server", "ok answers", "ok lock", "ok messages", "ok locks")
	if want := "  The store took 1."; !strings.Contains(got.stdout, want) {
		t.Errorf("got %s, want %q", got.stdout, want)
	}
}

func TestWhyAKeyIsWaitedFor(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	redis.hold(t, "k")
	redis.newClient(t).LockChan(t.Context(), "k")
	kit.Eventually(t, "one waiter", func() bool { return strings.Contains(redis.run(t, "inspect", "k").stdout, "waiters   1") })
	got := redis.run(t, "why", "k")
	got.want(t, 0)
	got.wantFindings(t, "note holder", "note renewals", "note queue")
	for _, text := range []string{`Held by "a test", token 1`, "asynclock unlock k --force --token 1", `1 waits; the first is "a test", for `} {
		if !strings.Contains(got.stdout, text) {
			t.Errorf("got %s, want it to contain %q", got.stdout, text)
		}
	}
}

// TestDoctorInterrupted ends at once, and is no finding.
func TestDoctorInterrupted(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	redis.hold(t, "k")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	redis.Server().SetPreHook(func(c *server.Peer, command string, _ ...string) bool {
		if command == "EVALSHA_RO" || command == "EVALSHA" {
			cancel()
		}
		return standalone(c, command)
	})
	got := redis.runWith(ctx, strings.NewReader(""), "why", "k")
	got.want(t, 130, "context canceled")
	if got.stdout != "" {
		t.Errorf("got %s, want no finding", got.stdout)
	}
}
