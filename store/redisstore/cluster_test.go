// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store"
)

// owner returns which of nodes serves key.
func owner(t *testing.T, nodes []*server, redisKey string) int {
	t.Helper()
	for i, node := range nodes {
		if _, err := node.Try("GET", redisKey); err == nil {
			return i
		}
	}
	t.Fatalf("no node serves %q", redisKey)
	panic("unreachable")
}

func TestClusterMessagesStayInTheSlot(t *testing.T) {
	t.Parallel()
	sv := onServer(t, redistest.Option(t, "ASYNCLOCK_CLUSTER_URL"))
	if !sv.has(t, "SSUBSCRIBE") {
		t.Skip("this server has no sharded pub-sub, which came with Redis 7: its one inbox for all keys is tested elsewhere")
	}
	st := sv.store(t)
	a, b := join(t, st), join(t, st)
	a.Hold("key", "a")
	sv.queueAndLeave(t, "key", "lost")
	b.waitForMessage("key", "b")
	want := "s" + sv.prefix + ":" + string(appendTag(nil, bucketOf("key"))) + ":c:" + b.session.id
	if got := b.session.address(t.Context(), "key"); got != want {
		t.Errorf("address: got %q, want %q", got, want)
	}
	// The one that left is skipped in the same step, by the count of receivers.
	a.release(store.ReleaseRequest{Key: "key", Owner: "a"})
	b.Heard(store.EventGrant, "b")
	if got := st.Features(); !got.FIFO {
		t.Errorf("Features: got %+v", got)
	}
}

func TestClusterRenewsAndListsAllBuckets(t *testing.T) {
	t.Parallel()
	sv := onServer(t, redistest.Option(t, "ASYNCLOCK_CLUSTER_URL"))
	c := join(t, sv.store(t))
	var acquires []store.AcquireRequest
	var renewals []store.RenewRequest
	for i := range 100 {
		q := redistest.Request("key"+strconv.Itoa(i), "o"+strconv.Itoa(i))
		q.TTL = 10 * time.Minute // a busy machine takes a while for a hundred requests
		acquires = append(acquires, q)
		renewals = append(renewals, store.RenewRequest{Key: q.Key, Owner: q.Owner, TTL: long})
	}
	for _, q := range acquires {
		c.Want(q, store.Granted)
	}
	for i, got := range c.session.Renew(t.Context(), renewals) {
		if got.Err != nil {
			t.Errorf("Renew %d: got %v, want no error", i, got.Err)
		}
	}
	if got := len(list(t, c, "key")); got != 100 {
		t.Errorf("List: got %d keys, want 100", got)
	}
	if lane := c.session.Lane("key1"); lane != bucketOf("key1") {
		t.Errorf("Lane: got %d, want the bucket, %d", lane, bucketOf("key1"))
	}
}

// A client that takes a node for a standalone server uses the same names.
func TestClusterAndStandaloneClientsExcludeEachOther(t *testing.T) {
	t.Parallel()
	cluster, nodes := ownCluster(t)
	for _, node := range nodes {
		node.prefix = cluster.prefix
	}
	inCluster := join(t, cluster.store(t))
	inCluster.Hold("key", "a")
	node := nodes[owner(t, nodes, cluster.redisKey("key", 'l'))]
	single := join(t, node.newStore(t))
	q := redistest.Request("key", "b")
	q.Wait = false
	if got := single.Want(q, store.Held); got.Holder != "a at home" {
		t.Errorf("Held: got %+v, want it held by a", got)
	}
}

// Nor does it ask for keys of several slots in one script, once it has been told.
func TestAStandaloneClientOfAClusterRenewsAllBuckets(t *testing.T) {
	t.Parallel()
	_, nodes := startCluster(t, servers.Config{}, 1)
	node := nodes[0]
	c := join(t, node.store(t))
	if got := c.session.Lane("key1"); got != 0 {
		t.Fatalf("Lane: got %d, want that all keys share one", got)
	}
	renewals := []store.RenewRequest{{Key: "key", Owner: "a", TTL: -1}} // which makes no sense
	for i := range 100 {
		q := redistest.Request("key"+strconv.Itoa(i), "o"+strconv.Itoa(i))
		renewals = append(renewals, store.RenewRequest{Key: q.Key, Owner: q.Owner, TTL: 2 * long, Token: c.Want(q, store.Granted).Token})
	}
	for range 2 {
		for i, got := range c.session.Renew(t.Context(), renewals) {
			if i == 0 && !errors.Is(got.Err, store.ErrInvalidOption) {
				t.Errorf("Renew with a bad TTL: got %v, want ErrInvalidOption", got.Err)
			} else if i > 0 && got.Err != nil {
				t.Errorf("Renew %d: got %v, want no error", i, got.Err)
			}
		}
	}
	for _, q := range renewals[1:] {
		if left := node.pttl(t, q.Key, 'l'); left <= long {
			t.Errorf("TTL of %q: got %v, want %v", q.Key, left, q.TTL)
		}
	}
	if got := node.Do(t, "INFO", "errorstats"); !strings.Contains(got, "errorstat_CROSSSLOT:count=1\r") {
		t.Errorf("errors: got %q, want one CROSSSLOT, from which the store has learned", got)
	}
}

func TestAClusterWithoutShardedMessagesUsesOneInbox(t *testing.T) {
	t.Parallel()
	var args []string
	if ownServer(t).has(t, "SSUBSCRIBE") { // one that hasn't does not start with these
		args = []string{"--rename-command", "SSUBSCRIBE", "", "--rename-command", "SPUBLISH", ""}
	}
	sv, _ := ownCluster(t, args...)
	st := sv.store(t)
	a, b := join(t, st), join(t, st)
	for i := range 5 {
		key := "key" + strconv.Itoa(i)
		a.Hold(key, "a")
		b.waitForMessage(key, "b")
		if got, want := b.session.address(t.Context(), key), "u"+sv.prefix+":c:"+b.session.id; got != want {
			t.Errorf("address: got %q, want %q", got, want)
		}
		a.release(store.ReleaseRequest{Key: key, Owner: "a"})
		b.Heard(store.EventGrant, "b")
	}
}

// A replica takes over, and the old primary goes, or stays as a replica. There it delivers what the new primary sends,
// which does not know the subscription, so only the next proof tells.
func TestAClusterFailsOver(t *testing.T) {
	t.Parallel()
	for name, goes := range map[string]bool{"the old primary goes": true, "the old primary stays": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failsOver(t, goes, time.Minute)
		})
	}
}

func failsOver(t *testing.T, goes bool, limit time.Duration) {
	t.Helper()
	sv, nodes := ownCluster(t)
	st := sv.newStore(t, WithoutFailoverGrace())
	a, b := join(t, st), join(t, st)
	holder := redistest.Request("key", "a")
	holder.TTL = 10 * time.Minute // a busy machine takes long to fail over
	first := a.Want(holder, store.Granted)
	b.Wait("key", "b")

	old := nodes[owner(t, nodes, sv.redisKey("key", 'l'))]
	replica := sv.addReplica(t, old)
	replica.Do(t, "CLUSTER", "FAILOVER")
	kit.Eventually(t, "the failover is over", func() bool {
		return strings.Contains(replica.Do(t, "INFO", "replication"), "role:master") && strings.Contains(old.Do(t, "INFO", "replication"), "role:slave")
	})

	if goes {
		_, _ = old.Try("SHUTDOWN", "NOSAVE") // there is no answer
	}
	q := redistest.Request("key", "b")
	hears := func() bool {
		got := b.Acquire(q)
		if got.Status != store.Waiting || got.Recheck != 0 {
			return false
		}
		if st.unsharded.Load() { // then messages go through all nodes
			return true
		}
		n, err := replica.Try("PUBSUB", "SHARDNUMSUB", b.session.sharded[bucketOf("key")].Load().channel.name)
		return err == nil && strings.HasSuffix(n, " 1]")
	}
	for end := time.Now().Add(limit); !hears(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the waiter does not hear from the new primary after %v", limit)
		}
	}
	a.release(store.ReleaseRequest{Key: "key", Owner: "a", Token: first.Token})
	if e := b.Heard(store.EventGrant, "b"); e.Grant.Token <= first.Token {
		t.Errorf("token: got %d, want more than %d", e.Grant.Token, first.Token)
	}
}
