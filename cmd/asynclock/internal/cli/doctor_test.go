// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

var findingFields = []string{"check", "verdict", "fact", "fix"}

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
		if len(rest) > 0 && words[0]+" "+words[1] == rest[0] {
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
	again := redis.run(t, "doctor", "--json", "--ttl", "1h")
	again.want(t, got.code)
	var checks []string
	for line := range strings.Lines(again.stdout) {
		f := object(t, line, findingFields...)
		checks = append(checks, fmt.Sprint(f["verdict"], " ", f["check"]))
	}
	if n := len(checks); n < 4 || checks[0] != "ok answers" || checks[1] != "ok lock" || checks[2] != "ok messages" || checks[n-1] != "ok locks" {
		t.Errorf("got %s, want the same findings as JSON", again.stdout)
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
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() // the kernel accepts, and nobody reads
	for url, fact := range map[string]string{
		"redis://127.0.0.1:1":                              "connection refused",
		"redis://user:hunter2@" + locked.Addr():            "denied by the store",
		"redis://user:hunter2@" + listener.Addr().String(): "",
	} {
		text := "fail  server  The store can't be opened: "
		for _, command := range []string{"doctor", "why k"} {
			got := place{url}.run(t, strings.Fields(command)...)
			got.want(t, 2)
			if !strings.HasPrefix(got.stdout, text) || !strings.Contains(got.stdout, fact) || !strings.Contains(got.stdout, "\n              fix: ") {
				t.Errorf("%s of %s: got %s, want %s%s, and a fix", command, url, got.stdout, text, fact)
			}
			if strings.Contains(got.stdout, "hunter2") {
				t.Errorf("%s of %s: the password shows: %s", command, url, got.stdout)
			}
		}
	}
	got := place{"redis://127.0.0.1:1"}.run(t, "doctor", "--json")
	got.want(t, 2)
	if f := object(t, got.stdout, findingFields...); f["verdict"] != "fail" || f["check"] != "server" {
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

func TestDoctorWithoutRights(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	redis.Server().SetPreHook(func(c *server.Peer, command string, _ ...string) bool {
		if strings.HasPrefix(command, "EVAL") {
			c.WriteError("NOPERM this user has no permissions to run the '" + strings.ToLower(command) + "' command")
			return true
		}
		return standalone(c, command)
	})
	got := redis.run(t, "doctor")
	got.wantFindings(t, "fail answers", "fail lock", "note messages", "ok locks")
	if !strings.Contains(got.stdout, "no permissions to run the 'evalsha") {
		t.Errorf("got %s, want the right that is missing", got.stdout)
	}
}

func TestForeignDataIsAFinding(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	redis.hold(t, "k\n")
	for _, key := range redis.Keys() {
		if strings.HasSuffix(key, ":l") {
			_ = redis.Set(key, "not a lock")
		}
	}
	got := redis.run(t, "doctor", "--ttl", "1h")
	got.wantFindings(t, "ok answers", "ok lock", "ok messages", "ok locks", "warn locks")
	if !strings.Contains(got.stdout, `1 key: "k\n": what is stored there`) {
		t.Errorf("got %s, want the key", got.stdout)
	}
	got = redis.run(t, "why", "k\n")
	got.want(t, 2)
	got.wantFindings(t, "fail key")
}

func TestWhyAKeyIsWaitedFor(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	got := redis.run(t, "why", "k")
	got.want(t, 0)
	if want := "ok    key  Nobody holds it, and nobody waits for it.\n"; got.stdout != want {
		t.Errorf("got %q, want %q", got.stdout, want)
	}
	redis.hold(t, "k")
	redis.newClient(t).LockChan(t.Context(), "k")
	kit.Eventually(t, "one waiter", func() bool { return strings.Contains(redis.run(t, "inspect", "k").stdout, "waiters   1") })
	got = redis.run(t, "why", "k")
	got.want(t, 0)
	got.wantFindings(t, "note holder", "note renewals", "note queue")
	for _, text := range []string{`Held by "a test", token 1`, "asynclock unlock k --force --token 1", `1 waits; the first is "a test", for `} {
		if !strings.Contains(got.stdout, text) {
			t.Errorf("got %s, want it to contain %q", got.stdout, text)
		}
	}
	got = redis.run(t, "why", "k", "--json")
	got.want(t, 0)
	if f := object(t, strings.SplitAfter(got.stdout, "\n")[0], findingFields...); f["check"] != "holder" || f["verdict"] != "note" {
		t.Errorf("got %v, want the holder", f)
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
