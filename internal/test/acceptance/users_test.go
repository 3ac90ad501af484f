// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

func TestSecurityPageNamesTheSameRights(t *testing.T) {
	_, text, _ := strings.Cut(kit.ReadFile(t, "docs/security.md"), "ACL SETUSER locker ")
	text, _, _ = strings.Cut(text, "On Redis 6.2")
	before, mayBeRefused, _ := strings.Cut(text, "**A single server**")
	_, after, found := strings.Cut(mayBeRefused, "**`INFO`.**")
	if !found {
		t.Fatal("docs/security.md has no rights that a single server may refuse, and then INFO")
	}
	text = before + after
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
	env := startAlone(t, nil).openForUser(t, "story")
	counterLosesNothing(env)
	clientsAreServedInOrder(env)
	tell(t, env.again, wokenWaiterRunsAtOnce)
	endedWaitLeavesNoTrace(env)
	jobRunsOnceInItsInterval(env)
	tell(t, env.again, forceTakesTheKey)
}

func TestUserWithTheLeastRightsCanDoEverythingInACluster(t *testing.T) {
	t.Parallel()
	env := startCluster(t, nil).openForUser(t, "story")
	counterLosesNothing(env)
	tell(t, env.again, wokenWaiterRunsAtOnce)
	tell(t, env.again, forceTakesTheKey)
	inspectAndListTell(env)
}

func TestUserWhoMayNotSubscribePolls(t *testing.T) {
	t.Parallel()
	var log kit.Journal
	d := startAlone(t, nil)
	d.rights = slices.DeleteFunc(d.rights, func(right string) bool {
		return right[0] == '&' || strings.Contains(right, "pub") || strings.Contains(right, "sub")
	})
	d.refused = append(d.refused, "subscribe", "unsubscribe")
	env := d.openForUser(t, "story", redisstore.WithLogger(log.Logger(slog.LevelWarn)))
	counterLosesNothing(env)
	stores := 4
	tell(t, env.again, func(env *Env) { // not at once, but many times per heartbeat
		wokenWaiterRunsAtOnce(env)
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
