// SPDX-License-Identifier: Apache-2.0

package asynclockgo_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store/redisstore"
)

// rights reads from the documentation of package redisstore what an ACL user
// needs: always, and in a Cluster too.
func rights(t *testing.T) (always, inCluster []string) {
	t.Helper()
	doc, err := os.ReadFile("store/redisstore/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(doc), "\n// # Rights\n")
	text, _, found := strings.Cut(text, "On Redis 6.2")
	if !found {
		t.Fatal("store/redisstore/doc.go has no section Rights that ends with Redis 6.2")
	}
	right := regexp.MustCompile(`[~&+][a-z|:{*]+`)
	// The indented block is for everyone, the text after it for Clusters.
	for line := range strings.Lines(text) {
		found := right.FindAllString(strings.ReplaceAll(line, "asynclock:", "story:"), -1)
		inCluster = append(inCluster, found...)
		if strings.HasPrefix(line, "//\t") {
			always = append(always, found...)
		}
	}
	if len(always) == 0 || len(inCluster) == len(always) {
		t.Fatalf("rights in store/redisstore/doc.go: got %q and %q, want some, and more in a Cluster", always, inCluster)
	}
	return always, inCluster
}

// By the way, rueidis asks whether this is a Cluster, and introduces itself. A
// refusal is an answer, too.
var byTheWay = []string{"cluster", "client"}

func TestSecurityPageNamesTheSameRights(t *testing.T) {
	page, err := os.ReadFile("docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(strings.ReplaceAll(string(page), "asynclock:", "story:"), "ACL SETUSER locker ")
	text, _, _ = strings.Cut(text, "On Redis 6.2")
	standalone, _, found := strings.Cut(text, "In a Cluster")
	if !found {
		t.Fatal("docs/security.md has no user called locker with rights of its own in a Cluster")
	}
	always, inCluster := rights(t)
	right := regexp.MustCompile(`[~&+][a-z|:{*]+`)
	for _, c := range []struct {
		name      string
		got, want []string
	}{{"always", right.FindAllString(standalone, -1), always}, {"in a Cluster", right.FindAllString(text, -1), inCluster}} {
		slices.Sort(c.got)
		slices.Sort(c.want)
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: docs/security.md has %q, package redisstore has %q, want the same", c.name, c.got, c.want)
		}
	}
}

func TestUserWithTheLeastRightsCanDoEverything(t *testing.T) {
	t.Parallel()
	always, _ := rights(t)
	p := openForUser(t, []*server{startServer(t)}, always, byTheWay)
	counterLosesNothing(p)
	clientsAreServedInOrder(p)
	tell(t, p.again, wokenWaiterRunsAtOnce)
	endedWaitLeavesNoTrace(p)
	tell(t, p.again, forceTakesTheKey)
}

func TestUserWithTheLeastRightsCanDoEverythingInACluster(t *testing.T) {
	t.Parallel()
	_, inCluster := rights(t)
	p := openForUser(t, startCluster(t), inCluster, []string{"client"})
	counterLosesNothing(p)
	tell(t, p.again, wokenWaiterRunsAtOnce)
	tell(t, p.again, forceTakesTheKey)
	inspectAndListTell(p)
}

func TestUserWhoMayNotSubscribePolls(t *testing.T) {
	t.Parallel()
	var log journal
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	always, _ := rights(t)
	silent := slices.DeleteFunc(always, func(right string) bool {
		return right[0] == '&' || strings.Contains(right, "pub") || strings.Contains(right, "sub")
	})
	p := openForUser(t, []*server{startServer(t)}, silent, []string{"cluster", "client", "subscribe"}, redisstore.WithLogger(logger))
	counterLosesNothing(p)
	stores := 4
	tell(t, p.again, func(p *place) { // not at once, but many times per heartbeat
		wokenWaiterRunsAtOnce(p)
		stores += 2
	})

	// Each store that had to do without has said so once, or is about to.
	for end := time.Now().Add(20 * time.Second); strings.Count(log.String(), "no usable pub-sub") < stores && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if got := strings.Count(log.String(), "no usable pub-sub"); got != stores {
		t.Errorf("warnings: got %d, want one for each of %d stores:\n%s", got, stores, log.String())
	}
}

// openForUser makes a place whose clients log in as a user with the given
// rights, and checks in the end that they were refused nothing but what is
// expected, as ACL LOG names it.
func openForUser(t *testing.T, servers []*server, rights, refused []string, options ...redisstore.Option) *place {
	t.Helper()
	const name, password = "locker", "secret"
	for _, s := range servers {
		s.ask(t, append([]string{"ACL", "SETUSER", name, "on", ">" + password, "resetkeys", "resetchannels", "-@all"}, s.known(t, rights)...)...)
	}
	p := openRedis(t, "redis://"+name+":"+password+"@"+servers[0].addr(), "story", options...)
	t.Cleanup(func() {
		for _, s := range servers {
			log, err := s.client.Do(context.Background(), s.client.B().Arbitrary("ACL", "LOG").Build()).ToArray()
			if err != nil {
				t.Error(err)
			}
			for _, m := range log {
				entry, err := m.AsStrMap()
				command, _, _ := strings.Cut(entry["object"], "|")
				if err != nil || !slices.Contains(refused, command) {
					t.Errorf("refused by the server: got %v, %v, want nothing but %q", entry, err, refused)
				}
			}
		}
	})
	return p
}

// known leaves out rights to commands that the server does not have.
func (s *server) known(t *testing.T, rights []string) []string {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(rights), func(right string) bool {
		command, _, _ := strings.Cut(strings.TrimPrefix(right, "+"), "|")
		return strings.HasPrefix(right, "+") && s.ask(t, "COMMAND", "INFO", command) == "[<nil>]"
	})
}

// A journal is a log that may be written from anywhere.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}
