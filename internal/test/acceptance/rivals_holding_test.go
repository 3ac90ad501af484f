// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/faultconn"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/servers"
)

func cutOffHolderKnowsFirst(t *testing.T) {
	env, _ := openOwnServer(t)
	tell(t, env.again, cutOffHolderLosesLease)
}

func deadlineOfTheWaitEndsNoHold(t *testing.T) {
	const limit = short / 2
	env, server := openOwnServer(t)
	locks := env.client(asynclock.WithTTL(short))
	tell(t, env.again, func(env *Env) {
		wait, cancel := context.WithTimeout(env.ctx, limit)
		defer cancel()
		lease, err := locks.Lock(wait, "key")
		if err != nil {
			env.mistimed("Lock of a free key: got %v, want a lease", err)
			return
		}
		ttl, err := strconv.Atoi(ask(t, server, "PTTL", env.redisKeys("key")['l']))
		if err != nil {
			t.Fatal(err)
		}
		if got := time.Duration(ttl) * time.Millisecond; got <= limit {
			env.mistimed("the key's TTL: got %v, want that of the lock, %v", got, short)
		}
		<-wait.Done()
		select {
		case <-lease.Done():
			env.mistimed("the lease: got %v, want it to go on", lease.Err())
			return
		case <-time.After(short):
		}
		if !lease.Valid(0) {
			env.mistimed("the lease a TTL after the deadline of the wait: got %v, want it valid", lease.Err())
			return
		}
		env.unlock(lease)
	})
}

// renewalsPassASickShard: one of three masters stops to answer for two TTLs. Its
// leases can't be saved, the others must not notice.
func renewalsPassASickShard(t *testing.T) {
	const keys = 60
	cluster := startCluster(t, nil)
	env, nodes := openRedis(t, cluster.address, "story"), cluster.Nodes
	tell(t, env.again, func(env *Env) {
		locks := env.client(asynclock.WithTTL(short))
		leases := make(map[string]*asynclock.Lease, keys)
		for i := range keys {
			leases[jobKey(i)] = env.lock(locks, jobKey(i))
		}
		sick := leasesOn(env, nodes[0], leases)
		if len(sick) == 0 || len(sick) == keys {
			t.Fatalf("keys of the sick master: got %d of %d, want some", len(sick), keys)
		}
		ask(t, nodes[0], "CLIENT", "PAUSE", strconv.FormatInt((2*short).Milliseconds(), 10), "ALL")
		time.Sleep(2 * short)
		for key, lease := range leases {
			err := lease.Err()
			switch {
			case sick[key] && !errors.Is(err, asynclock.ErrNotRenewed):
				env.mistimed("lease on the sick master: got %v, want ErrNotRenewed", err)
			case !sick[key] && err != nil:
				env.mistimed("lease on another master: got %v, want it to go on", err)
			}
		}
		for _, lease := range leases {
			if err := lease.Unlock(env.ctx); err != nil && !errors.Is(err, asynclock.ErrLost) {
				t.Errorf("unlock: got %v, want no error or ErrLost", err)
			}
		}
	})
}

// leasesOn returns the keys of leases that a node keeps.
func leasesOn(env *Env, node *servers.Redis, leases map[string]*asynclock.Lease) map[string]bool {
	env.Helper()
	client, err := node.Client()
	if err != nil {
		env.Fatal(err)
	}
	found := make(map[string]bool)
	for _, name := range env.redis.keysOn(env.ctx, env.T, client) {
		parts := strings.Split(name, ":")
		if key := parts[len(parts)-2]; leases[key] != nil {
			found[key] = true
		}
	}
	return found
}

// watchdogEndsWithTheLock: leases that were unlocked, and acquisitions that were
// given up at whatever moment, leave nothing that is renewed.
func watchdogEndsWithTheLock(t *testing.T) {
	const rounds = 100
	env, server := openOwnServer(t)
	y := &tally{server: server, lines: []*faultconn.Line{new(faultconn.Line)}}
	locks := env.clientOn(y.lines[0], asynclock.WithTTL(short))
	for i := range rounds {
		env.unlock(env.lock(locks, "unlocked"))
		for _, key := range []string{"given up", "given up as a future"} {
			wait, cancel := context.WithTimeout(env.ctx, time.Duration(i)*20*time.Microsecond)
			if key == "given up" {
				if lease, err := locks.Lock(wait, key); err == nil {
					env.unlock(lease)
				}
			} else {
				locks.LockChan(wait, key) // and nobody claims it
				<-wait.Done()
			}
			cancel()
		}
	}
	// A renewal that goes on although nobody holds the key would come each third of the TTL.
	kit.Eventually(t, "a TTL in which nothing is sent", func() bool {
		sent, _ := y.during(t, func() { time.Sleep(short) })
		return sent["EVALSHA"]+sent["EVAL"] == 0
	})
	for info, err := range locks.List(env.ctx, "") {
		t.Errorf("left: got %+v, %v, want nothing", info, err)
	}
}

func cancelledUnlockFreesTheKey(t *testing.T) {
	const rounds = 20
	env, _ := openOwnServer(t)
	ours, theirs := env.client(), env.client()
	ended, end := context.WithCancel(env.ctx)
	end()
	tell(t, env.again, func(env *Env) {
		patient, cancel := context.WithTimeout(env.ctx, 10*soon)
		defer cancel()
		for range rounds {
			lease := env.lock(ours, "key")
			if err := lease.Unlock(ended); err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("Unlock with a cancelled context: got %v, want no error or context.Canceled", err)
			}
			start := time.Now()
			next, err := theirs.Lock(patient, "key")
			if err != nil {
				t.Fatalf("the next lease: got %v after %v, want it soon", err, time.Since(start))
			}
			env.wantWithin(soon, start, "the next lease")
			env.unlock(next)
		}
	})
}

// lateReleaseLeavesTheSuccessorAlone: of a holder that let its lease expire, and
// of one that was stopped and does not know.
func lateReleaseLeavesTheSuccessorAlone(t *testing.T) {
	env, server := openOwnServer(t)
	tell(t, env.again, pausedHolderHasLost)
	tell(t, env.again, func(env *Env) {
		ours, theirs := env.client(), env.client()
		late := env.lock(ours, "key", asynclock.WithTTL(short), asynclock.WithRenewal(false))
		next := env.lock(theirs, "key")
		name := env.redisKeys("key")['l']
		before := ask(t, server, "GET", name)
		if err := late.Unlock(env.ctx); !errors.Is(err, asynclock.ErrLost) {
			t.Errorf("late Unlock: got %v, want ErrLost", err)
		}
		if err := next.Renew(env.ctx, long); err != nil {
			t.Errorf("renewal of the next lease: got %v, want no error", err)
		}
		if after := ask(t, server, "GET", name); after != before {
			t.Errorf("the next holder's record: got %q, want %q as before", after, before)
		}
		env.unlock(next)
	})
}

// heldLocksAreQuiet: what goes over the wire while locks are held and nobody
// waits are their renewals, many to a command.
func heldLocksAreQuiet(t *testing.T) {
	const (
		// A lock is given up when the server has not answered for a third of ttl. A request
		// without an answer in time is also sent again. A busy machine answers within
		// seconds.
		ttl = 8 * time.Second
		// each is when a lease is renewed.
		each = ttl / 3
		// perCommand is how many renewals must share a command, on average. Usually 16 do.
		// Where timers fire late there are fewer. If each were sent alone it would be 1.
		perCommand = 8
	)
	for _, held := range []int{1, 1000} {
		t.Run(strconv.Itoa(held), func(t *testing.T) {
			t.Parallel()
			env, server := openOwnServer(t)
			y := &tally{server: server, lines: []*faultconn.Line{new(faultconn.Line)}}
			locks := env.clientOn(y.lines[0], asynclock.WithTTL(ttl))
			pending := make([]<-chan asynclock.Result, held)
			for i := range pending {
				pending[i] = locks.LockChan(env.ctx, jobKey(i))
			}
			leases := make([]*asynclock.Lease, held)
			for i, future := range pending {
				got, err := (<-future).Lease()
				if errors.Is(err, asynclock.ErrUnreachable) { // a busy machine answers late
					got = env.lock(locks, jobKey(i))
				} else if err != nil {
					env.Fatal(err)
				}
				leases[i] = got
			}
			tell(t, env.again, func(env *Env) {
				start := time.Now()
				sent, _ := y.during(t, func() { time.Sleep(2 * each) })
				rounds := int(time.Since(start)/each) + 2
				// On the grid of renewals those of a round may be in two batches.
				if got, want := sent["EVALSHA"]+sent["EVAL"], rounds*(held/perCommand+2); got > want {
					env.mistimed("commands for %d locks in %v: got %d, want at most %d", held, time.Since(start), got, want)
				}
			})
			for _, l := range leases {
				env.unlock(l)
			}
		})
	}
}
