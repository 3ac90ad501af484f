// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"fmt"
	"net/url"
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

// stores are URLs of all kinds, made of what a variable of the environment says.
var stores = map[string]struct {
	variable  string
	url       func(string) string
	anonymous bool // who has a key can't be told
	noteless  bool
}{
	"redis":           {"ASYNCLOCK_REDIS_URL", strings.Clone, false, false},
	"sentinel":        {"ASYNCLOCK_SENTINEL_URL", strings.Clone, false, false},
	"cluster":         {"ASYNCLOCK_CLUSTER_URL", strings.Clone, false, false},
	"postgres":        {"ASYNCLOCK_POSTGRES_URL", strings.Clone, false, false},
	"mysql":           {"ASYNCLOCK_MYSQL_URL", mysqlURL, false, false},
	"zookeeper":       {"ASYNCLOCK_ZOOKEEPER", func(addr string) string { return "zk://" + addr }, false, true},
	"spring+redis":    {"ASYNCLOCK_REDIS_URL", func(url string) string { return "spring+" + url + "?registry=clitest" }, true, true},
	"spring+postgres": {"ASYNCLOCK_POSTGRES_URL", func(url string) string { return "spring+" + url + "&region=clitest" }, true, true},
	"spring+mysql":    {"ASYNCLOCK_MYSQL_URL", func(dsn string) string { return "spring+" + mysqlURL(dsn) }, true, true},
}

// mysqlURL returns a URL of what go-sql-driver spells user@tcp(host:port)/database.
func mysqlURL(dsn string) string {
	return "mysql://" + strings.NewReplacer("tcp(", "", ")", "").Replace(dsn)
}

// TestRealServers: the whole of it, once, on each kind of real server.
func TestRealServers(t *testing.T) {
	t.Parallel()
	for name, s := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := place{s.url(kit.Require(t, s.variable))}
			testServer(t, at, s.anonymous, s.noteless)
		})
	}
}

// TestAServerThatHasJustStartedSaysForHowLongItGrantsNothing: a wait says it, and so does its
// end. A job that takes no wait runs after that.
func TestAServerThatHasJustStartedSaysForHowLongItGrantsNothing(t *testing.T) {
	t.Parallel()
	at := place{redistest.Start(t, servers.Config{}).URL() + "?failover_grace=10s"} // or it takes longer
	nightly := at.background(t.Context(), "run", "nightly", "--ttl", "10s", "--wait", "0", "--", program(t), "exit", "7")
	defer func() {
		finished(t, nightly).want(t, 7, `waiting for "nightly": the server was started or promoted lately, and grants nothing for `)
	}()
	waits := at.background(t.Context(), "run", "k", "--ttl", "10s", "--wait", "2s", "-E", "3", "--", program(t), "exit", "0")
	wantGrace(t, at)
	finished(t, waits).want(t, 124, `waiting for "k": nobody holds it, but the server was started or promoted lately, and grants nothing for `, `no lock on "k" within 2s: `)
}

// wantGrace expects that doctor and why say it, too.
func wantGrace(t *testing.T, at place) {
	t.Helper()
	doctor, why := at.background(t.Context(), "doctor"), at.background(t.Context(), "why", "k")
	for check, done := range map[string]<-chan result{"lock": doctor, "grace": why} {
		got := finished(t, done)
		got.want(t, 1)
		says := regexp.MustCompile(`(?m)^warn  ` + check + ` +The server was started or promoted lately, and grants nothing for \d\S*s yet`)
		if !says.MatchString(got.stdout) {
			t.Errorf("got %s, want %s", got.stdout, says)
		}
	}
}

func testServer(t *testing.T, at place, anonymous, noteless bool) {
	t.Helper()
	bin := program(t)
	file := filepath.Join(t.TempDir(), "file")
	holder, heldBy := "me", "held by me"
	if anonymous {
		holder, heldBy = "", "is held"
	}

	at.run(t, "migrate").want(t, 0)
	at.run(t, "run", key("orders/1"), "--", bin, "exit", "7").want(t, 7, "") // a server that was just started makes it wait, which it says
	running := at.background(t.Context(), "run", key("orders/1"), "--holder", "me", "--", bin, "sleep", file)
	exists(t, file)
	at.run(t, "run", key("orders/1"), "--wait", "0", "--", bin, "exit", "0").want(t, 75, heldBy)
	at.run(t, "run", key("orders/2"), "--wait", "0", "--", bin, "exit", "0").want(t, 0)
	got := at.run(t, "ls", key("orders/"))
	got.want(t, 0)
	if strings.Count(got.stdout, "\n") != 2 || !strings.Contains(got.stdout, "\n"+key("orders/1")+"  "+holder) {
		t.Errorf("got %q, want a table of orders/1", got.stdout)
	}
	got = at.run(t, "inspect", "--json", key("orders/1"))
	got.want(t, 0)
	if want := fmt.Sprintf(`{"key":%q,"held":true,"holder":%q`, key("orders/1"), holder); !anonymous && !strings.HasPrefix(got.stdout, want) {
		t.Errorf("got %s, want orders/1 as held by me", got.stdout)
	}
	holds := `ok    holder    Held by "` + holder
	if anonymous {
		holds = "ok    holder    Held by "
	}
	why, doctor := at.background(t.Context(), "why", key("orders/1")), at.background(t.Context(), "doctor", "--ttl", "1h")
	testFollowing(t, at, heldBy) // both take a while
	if !noteless {
		testNotes(t, at)
	}
	if got = finished(t, why); got.code > 1 || !strings.HasPrefix(got.stdout, holds) {
		t.Errorf("got code %d and %s, want orders/1 as held by me", got.code, got.stdout)
	}
	got = finished(t, doctor) // some of these servers are set up to lose data
	if !regexp.MustCompile(`(?s)(ok|note)  +lock .*\n(ok|note)  +messages .*\n(ok|note)  +locks  .* held`).MatchString(got.stdout) {
		t.Errorf("got code %d and %s, want that locks and messages work", got.code, got.stdout)
	}
	at.run(t, "unlock", "--force", "--token", "0", key("orders/1")).want(t, 0)
	// A holder whose inbox is not open yet hears of it by its next renewal, and not why.
	finished(t, running).want(t, 79, "lease lost: ", "; ending the command")
}

// began tells the keys of one run of the tests from those of all others.
var began = time.Now()

// key returns a key that nobody else uses.
func key(name string) string {
	return fmt.Sprintf("clitest-%d-%d/%s", os.Getpid(), began.UnixNano(), name)
}

// TestNoTables: a database without tables says what makes them.
func TestNoTables(t *testing.T) {
	t.Parallel()
	url := kit.Require(t, "ASYNCLOCK_POSTGRES_URL")
	at := place{url}
	at.run(t, "--prefix", "nobodys_", "ls").want(t, 65, "table ", "'asynclock migrate' makes and updates tables")
	if got := at.run(t, "--prefix", "nobodys_", "doctor"); !strings.Contains(got.stdout, "fix: Run 'asynclock migrate'") {
		t.Errorf("got %s, want what makes tables", got.stdout)
	}
}

// testFollowing: what looks at a key while it is taken and freed.
func testFollowing(t *testing.T, at place, heldBy string) {
	t.Helper()
	one, three := key("orders/1"), key("orders/3")
	watches := at.talk(t, "watch", key("orders/"), "--json")
	watches.says(t, fmt.Sprintf(`"change":"found","key":%q`, one))
	taken := at.background(t.Context(), "wait", three, "--held")
	holds := at.talk(t, "hold", three)
	holds.says(t, " "+three+"\n")
	finished(t, taken).want(t, 0)
	watches.says(t, fmt.Sprintf(`"change":"taken","key":%q`, three))
	b, printed := at.talk(t, "ui", key("orders/")).browse(t)
	for _, address := range []string{printed, b.page.String() + "key?key=" + url.QueryEscape(three)} {
		if _, page := b.ask(address, "", nil); !strings.Contains(page, three) || strings.Contains(page, "may be old") {
			t.Errorf("got page %s, want one of %s, without an error", page, three)
		}
	}
	freed := at.background(t.Context(), "wait", three)
	holds.stdin.Close()
	finished(t, holds.done).want(t, 0)
	finished(t, freed).want(t, 0)
	watches.says(t, fmt.Sprintf(`"change":"freed","key":%q`, three))
	at.run(t, "lock", one, "-n", "-E", "3", "--", program(t), "exit", "0").want(t, 3, heldBy)
}

// testNotes: a note is read while its key is held, where keys have notes.
func testNotes(t *testing.T, at place) {
	t.Helper()
	follows := at.talk(t, "note", key("noted"), "--follow")
	follows.says(t, "\n")
	holds := at.talk(t, "hold", key("noted"), "--note", "10.0.0.7:80")
	holds.says(t, " "+key("noted")+"\n")
	follows.says(t, "10.0.0.7:80\n")
	if got := at.run(t, "note", key("noted")); got.stdout != "10.0.0.7:80\n" {
		t.Errorf("got %+v, want the note", got)
	}
	holds.stdin.Close()
	finished(t, holds.done).want(t, 0)
	follows.says(t, "10.0.0.7:80\n\n")
}
