// SPDX-License-Identifier: Apache-2.0

package asynclockgo_test

import (
	"context"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/internal/notes/notestest"
	"github.com/asynclock/asynclock-go/internal/redistest"
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
		found := right.FindAllString(line, -1)
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

func TestSecurityPageNamesTheSameRights(t *testing.T) {
	page, err := os.ReadFile("docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "ACL SETUSER locker ")
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
	p := startAlone(t, nil).openForUser(t, "story")
	counterLosesNothing(p)
	clientsAreServedInOrder(p)
	tell(t, p.again, wokenWaiterRunsAtOnce)
	endedWaitLeavesNoTrace(p)
	tell(t, p.again, forceTakesTheKey)
}

func TestUserWithTheLeastRightsCanDoEverythingInACluster(t *testing.T) {
	t.Parallel()
	p := startCluster(t, nil).openForUser(t, "story")
	counterLosesNothing(p)
	tell(t, p.again, wokenWaiterRunsAtOnce)
	tell(t, p.again, forceTakesTheKey)
	inspectAndListTell(p)
}

func TestUserWhoMayNotSubscribePolls(t *testing.T) {
	t.Parallel()
	var log notestest.Journal
	d := startAlone(t, nil)
	d.rights = slices.DeleteFunc(d.rights, func(right string) bool {
		return right[0] == '&' || strings.Contains(right, "pub") || strings.Contains(right, "sub")
	})
	d.refused = append(d.refused, "subscribe", "unsubscribe")
	p := d.openForUser(t, "story", redisstore.WithLogger(log.Logger(slog.LevelWarn)))
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

// toList are the rights to list keys, which not every user needs.
var toList = []string{"+scan", "+role"}

// onServersForLockers starts servers that speak nothing but TLS, and opens places on
// them, each with a user of its own who has the least rights. What a story does to a
// server, and what it looks at there, is not done by that user.
func onServersForLockers(start func(*testing.T, *redistest.Encryption) *deployment) func(*testing.T) func(*testing.T) *place {
	return func(t *testing.T) func(*testing.T) *place {
		t.Helper()
		d := start(t, redistest.NewEncryption(t))
		d.rights = append(d.rights, toList...)
		return func(t *testing.T) *place {
			t.Helper()
			return d.openForUser(t, "story-"+uuid.NewString())
		}
	}
}

// openForUser makes a place whose clients log in as a user with the deployment's
// rights, for the prefix alone, and checks in the end that they were refused nothing
// but what is expected, as ACL LOG names it.
func (d *deployment) openForUser(t *testing.T, prefix string, options ...redisstore.Option) *place {
	t.Helper()
	const password = "secret"
	name := "locker-of-" + prefix
	for _, s := range d.nodes {
		words := append([]string{"ACL", "SETUSER", name, "on", ">" + password, "resetkeys", "resetchannels", "-@all"}, s.known(t, d.rights)...)
		for i, word := range words {
			words[i] = strings.ReplaceAll(word, "asynclock:", prefix+":")
		}
		s.ask(t, words...)
	}
	at := d.address
	at.url = strings.Replace(at.url, "://", "://"+name+":"+password+"@", 1)
	t.Cleanup(func() {
		for _, s := range d.nodes {
			log, err := s.client.Do(context.Background(), s.client.B().Arbitrary("ACL", "LOG", "1000").Build()).ToArray()
			if err != nil {
				t.Error(err)
			}
			for _, m := range log {
				entry, err := m.AsStrMap()
				command, _, _ := strings.Cut(entry["object"], "|")
				if err != nil || entry["username"] == name && !slices.Contains(d.refused, command) {
					t.Errorf("refused by the server: got %v, %v, want nothing but %q", entry, err, d.refused)
				}
			}
		}
	})
	return openRedis(t, at, prefix, options...)
}

// known leaves out rights to commands that the server does not have.
func (s *server) known(t *testing.T, rights []string) []string {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(rights), func(right string) bool {
		command, _, _ := strings.Cut(strings.TrimPrefix(right, "+"), "|")
		return strings.HasPrefix(right, "+") && s.ask(t, "COMMAND", "INFO", command) == "[<nil>]"
	})
}
