// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"testing"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// Curator's LeaderSelector and a lock in Go on the same path elect one leader at a time, in one queue,
// and see each other.
func TestElection(t *testing.T) {
	t.Parallel()
	root := newRoot()
	java, client, other := openPeer(t, root, long), goClient(t, root), goClient(t, root)
	term := lock(t, client, "leader")
	java.Do("campaign", "leader", "a Java service")
	wantWaiters(t, client, "leader", 1)
	next := other.LockChan(t.Context(), "leader", asynclock.WithDescription("another Go service"))
	wantWaiters(t, client, "leader", 2)

	// Java sees Go, as leader and as candidate.
	if got := java.Do("leader", "leader", "a Java service"); got != "a Go service" {
		t.Errorf("getLeader in Java: got %q, want Go's description", got)
	}
	if got, want := java.Do("candidates", "leader", "a Java service"), "a Go service\na Java service\nanother Go service"; got != want {
		t.Errorf("getParticipants in Java: got %q, want %q", got, want)
	}
	if got := java.Do("leads", "leader", "a Java service"); got != "false" {
		t.Errorf("hasLeadership in Java while Go leads: got %s, want false", got)
	}

	// Go sees Java, as leader and as candidate.
	info, err := other.Inspect(t.Context(), "leader")
	if err != nil || info.Holder != "a Go service" || len(info.Queue) != 2 || info.Queue[0].Holder != "a Java service" {
		t.Errorf("Inspect while Go leads: got %+v, %v, want Java's id as the first waiter", info, err)
	}
	unlock(t, term)
	java.Succeeds(java.Begin("term", "awaitterm", "leader", "a Java service"))
	if info, err = other.Inspect(t.Context(), "leader"); err != nil || info.Holder != "a Java service" || info.Token <= term.Token() {
		t.Errorf("Inspect while Java leads: got %+v, %v, want Java's id, and a token above %d", info, err, term.Token())
	}
	if len(next) > 0 {
		t.Error("Go leads beside Java")
	}

	// The next in the queue leads when Java has resigned.
	java.Do("resign", "leader", "a Java service")
	last := claim(t, next)
	if last.Token() <= info.Token {
		t.Errorf("token of the third term: got %d, want more than %d", last.Token(), info.Token)
	}
	kit.Eventually(t, "Java to lead no more", func() bool { return java.Do("leads", "leader", "a Java service") == "false" })
	unlock(t, last)
}

// The end of Java's session ends its term.
func TestJavaLeaderLosesItsSession(t *testing.T) {
	t.Parallel()
	root := newRoot()
	java, client := openPeer(t, root, short), goClient(t, root)
	java.Do("campaign", "leader", "a Java service")
	java.Succeeds(java.Begin("term", "awaitterm", "leader", "a Java service"))
	pending := client.LockChan(t.Context(), "leader")
	wantWaiters(t, client, "leader", 1)
	java.Do("expire", "leader")
	term := claim(t, pending)
	if got := java.Do("leader", "leader", "a Java service"); got != "a Go service" {
		t.Errorf("getLeader in Java after its session: got %q, want Go's description", got)
	}
	unlock(t, term)
}
