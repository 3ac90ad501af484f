// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// TestRealServers: the whole of it, once, on each kind of real server.
func TestRealServers(t *testing.T) {
	t.Parallel()
	for _, variable := range []string{"ASYNCLOCK_REDIS_URL", "ASYNCLOCK_SENTINEL_URL", "ASYNCLOCK_CLUSTER_URL"} {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			testServer(t, place{kit.Require(t, variable)})
		})
	}
}

// TestAServerThatHasJustStartedSaysForHowLongItGrantsNothing: a wait says it, and so does its
// end. A job that takes no wait runs after that.
func TestAServerThatHasJustStartedSaysForHowLongItGrantsNothing(t *testing.T) {
	t.Parallel()
	at := place{redistest.Start(t, servers.Config{}).URL()}
	wantGrace(t, at)
	nightly := at.background(t.Context(), "run", "nightly", "--wait", "0", "--", program(t), "exit", "7")
	defer func() {
		finished(t, nightly).want(t, 7, `waiting for "nightly": the server was started or promoted lately, and grants nothing for 1`)
	}()
	got := at.run(t, "run", "k", "--wait", "2s", "--", program(t), "exit", "0")
	got.want(t, 124, `waiting for "k": nobody holds it, but the server was started or promoted lately, and grants nothing for 1`, `no lock on "k" within 2s: `)
}

// wantGrace expects that doctor and why say it, too.
func wantGrace(t *testing.T, at place) {
	t.Helper()
	for command, check := range map[string]string{"doctor": "lock", "why k": "grace"} {
		got := at.run(t, strings.Fields(command)...)
		got.want(t, 1)
		says := regexp.MustCompile(`(?m)^warn  ` + check + ` +The server was started or promoted lately, and grants nothing for 1\S+s yet`)
		if !says.MatchString(got.stdout) {
			t.Errorf("%s: got %s, want %s", command, got.stdout, says)
		}
	}
}

func testServer(t *testing.T, at place) {
	t.Helper()
	bin := program(t)
	prefix := fmt.Sprintf("clitest-%d-%d", os.Getpid(), time.Now().UnixNano()) // nobody else's
	asynclock := func(args ...string) []string { return append([]string{"--prefix", prefix}, args...) }
	file := filepath.Join(t.TempDir(), "file")

	for _, key := range []string{"orders/1", "orders/2"} { // a server that was just started makes the first wait, which says so
		at.run(t, asynclock("run", key, "--", bin, "exit", "7")...).want(t, 7, "")
	}
	running := at.background(t.Context(), asynclock("run", "orders/1", "--holder", "me", "--", bin, "sleep", file)...)
	exists(t, file)
	at.run(t, asynclock("run", "orders/1", "--wait", "0", "--", bin, "exit", "0")...).want(t, 75, "held by me")
	at.run(t, asynclock("run", "orders/1", "--wait", "1s", "--", bin, "exit", "0")...).want(t, 124, "within 1s")
	at.run(t, asynclock("run", "orders/2", "--wait", "0", "--", bin, "exit", "0")...).want(t, 0)
	got := at.run(t, asynclock("ls", "orders/")...)
	got.want(t, 0)
	if strings.Count(got.stdout, "\n") != 2 || !strings.Contains(got.stdout, "\norders/1  me") {
		t.Errorf("got %q, want a table of orders/1", got.stdout)
	}
	got = at.run(t, asynclock("inspect", "--json", "orders/1")...)
	got.want(t, 0)
	if !strings.HasPrefix(got.stdout, `{"key":"orders/1","held":true,"holder":"me","token":`) {
		t.Errorf("got %s, want orders/1 as held by me", got.stdout)
	}
	got = at.run(t, asynclock("why", "orders/1")...)
	got.want(t, 0)
	if !strings.HasPrefix(got.stdout, `ok    holder    Held by "me", token `) {
		t.Errorf("got %s, want orders/1 as held by me", got.stdout)
	}
	got = at.run(t, asynclock("doctor", "--ttl", "1h")...)
	if !strings.Contains(got.stdout, "\nok    lock ") || !strings.Contains(got.stdout, "\nok    messages ") || !strings.Contains(got.stdout, " 1 key is held.\n") {
		t.Errorf("got code %d and %s, want that locks and messages work", got.code, got.stdout)
	}
	at.run(t, asynclock("unlock", "--force", "--token", "0", "orders/1")...).want(t, 0)
	// A holder whose inbox is not open yet hears of it by its next renewal, and not why.
	finished(t, running).want(t, 79, "lease lost: ", "; ending the command")
}
