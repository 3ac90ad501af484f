// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

// The grace makes no two holders of a key whose grant the promoted replica has never seen. The
// application's client finds the new primary by the sentinels.
func TestAFailoverMakesNoTwoHolders(t *testing.T) {
	t.Parallel()
	const ttl, prefix = 5 * time.Second, "failover"
	d := redistest.StartSentinel(t, servers.Config{})
	primary, replica := d.Nodes[0], d.Nodes[1]
	redistest.OnServer(t, rueidis.ClientOption{InitAddress: []string{primary.Addr}, ForceSingleClient: true}).Acquaint(t, prefix, ttl)
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: servers.MasterSet, SentinelAddrs: []string{d.Sentinels[0].Addr},
	})
	defer client.Close()
	one, other := locksOf(t, client, prefix, ttl), locksOf(t, client, prefix, ttl)

	cutOff(t, primary, replica)
	first, err := one.Lock(t.Context(), "key", asynclock.WithRenewal(false))
	if err != nil {
		t.Fatal(err)
	}
	primary.Kill()
	second := lockPatiently(t, other)
	if first.Valid(0) {
		t.Errorf("the key was granted under token %d while the lease of token %d was trusted", second.Token(), first.Token())
	}
	if second.Token() <= first.Token() {
		t.Errorf("token: got %d, want more than %d", second.Token(), first.Token())
	}
}

// locksOf opens a client of locks that has locked already: the epoch is there.
func locksOf(t *testing.T, client redis.UniversalClient, prefix string, ttl time.Duration) *asynclock.Client {
	t.Helper()
	st := newStore(t, client, redisstore.WithPrefix(prefix), redisstore.WithFailoverGrace(ttl))
	locks, err := asynclock.New(st, asynclock.WithTTL(ttl), asynclock.WithoutLogger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = locks.Close(ctx) // leases are left on purpose
	})
	if err := locks.WithLock(t.Context(), "key", func(context.Context, *asynclock.Lease) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return locks
}

// cutOff ends the replication, when the replica has all there is. It may not come back, having no password.
func cutOff(t *testing.T, primary, replica *servers.Redis) {
	t.Helper()
	fact := func(node *servers.Redis, name string) string {
		facts, err := node.Facts(t.Context(), "INFO", "replication")
		if err != nil {
			return err.Error()
		}
		return facts[name]
	}
	kit.Eventually(t, "the replica is in step", func() bool {
		return fact(replica, "master_link_status") == "up" && fact(primary, "master_repl_offset") == fact(replica, "slave_repl_offset")
	})
	for _, words := range [][]string{{"CONFIG", "SET", "requirepass", "not for replicas"}, {"CLIENT", "KILL", "TYPE", "replica"}} {
		if err := primary.Do(t.Context(), words...); err != nil {
			t.Fatal(err)
		}
	}
	kit.Eventually(t, "the replica is cut off", func() bool { return fact(replica, "master_link_status") == "down" })
}

// lockPatiently waits through a failover, in which the server may be away for longer than a waiter has patience.
func lockPatiently(t *testing.T, locks *asynclock.Client) (lease *asynclock.Lease) {
	t.Helper()
	kit.Eventually(t, "a lease after the failover", func() bool {
		got, err := locks.Lock(t.Context(), "key")
		if err != nil && !errors.Is(err, asynclock.ErrUnreachable) {
			t.Fatal(err)
		}
		lease = got
		return err == nil
	})
	return lease
}
