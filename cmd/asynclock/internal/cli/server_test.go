// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
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
	nightly := at.background(t.Context(), "run", "nightly", "--wait", "0", "--", program(t), "exit", "7")
	defer func() {
		finished(t, nightly).want(t, 7, `waiting for "nightly": the server was started or promoted lately, and grants nothing for 1`)
	}()
	got := at.run(t, "run", "k", "--wait", "2s", "--", program(t), "exit", "0")
	got.want(t, 124, `waiting for "k": nobody holds it, but the server was started or promoted lately, and grants nothing for 1`, `no lock on "k" within 2s: `)
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
	testFollowing(t, at, asynclock)
	at.run(t, asynclock("unlock", "--force", "--token", "0", "orders/1")...).want(t, 0)
	// A holder whose inbox is not open yet hears of it by its next renewal, and not why.
	finished(t, running).want(t, 79, "lease lost: ", "; ending the command")
}

// testFollowing: what looks at a key while it is taken and freed.
func testFollowing(t *testing.T, at place, asynclock func(...string) []string) {
	t.Helper()
	watches := at.talk(t, asynclock("watch", "orders/", "--json")...)
	watches.says(t, `"change":"found","key":"orders/1"`)
	follows := at.talk(t, asynclock("note", "orders/3", "--follow")...)
	follows.says(t, "\n")
	taken := at.background(t.Context(), asynclock("wait", "orders/3", "--held")...)
	holds := at.talk(t, asynclock("hold", "orders/3", "--note", "10.0.0.7:80")...)
	holds.says(t, "orders/3 ")
	follows.says(t, "10.0.0.7:80\n")
	finished(t, taken).want(t, 0)
	watches.says(t, `"change":"taken","key":"orders/3"`)
	if got := at.run(t, asynclock("note", "orders/3")...); got.stdout != "10.0.0.7:80\n" {
		t.Errorf("got %+v, want the note", got)
	}
	freed := at.background(t.Context(), asynclock("wait", "orders/3")...)
	holds.stdin.Close()
	finished(t, holds.done).want(t, 0)
	finished(t, freed).want(t, 0)
	watches.says(t, `"change":"freed","key":"orders/3"`)
	follows.says(t, "10.0.0.7:80\n\n")
	at.run(t, asynclock("lock", "orders/1", "-n", "-E", "3", "--", program(t), "exit", "0")...).want(t, 3, "held by me")
}
