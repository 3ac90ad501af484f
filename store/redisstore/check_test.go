// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/internal/redischeck"
	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// The checks of a single server, in their order.
var checks = []string{"server", "replication", "eviction", "memory", "persistence", "grace", "clock"}

// check returns what a store finds by name, with looks at the clocks that follow each other soon.
func check(t *testing.T, st *Store, want []string) map[string]store.Finding {
	t.Helper()
	found := make(map[string]store.Finding)
	var names []string
	st.check(t.Context(), 200*time.Millisecond, func(f store.Finding) {
		names = append(names, f.Check)
		found[f.Check] = f
		if (f.Verdict >= store.VerdictWarn) && f.Fix == "" || f.Fact == "" {
			t.Errorf("got %+v, want a fact, and what to do about it", f)
		}
	})
	if !slices.Equal(names, want) {
		t.Errorf("checks: got %q, want %q", names, want)
	}
	return found
}

// wantFinding compares a finding with a verdict, a part of the fact and a part of the fix.
func wantFinding(t *testing.T, got store.Finding, verdict store.Verdict, fact, fix string) {
	t.Helper()
	if got.Verdict != verdict || !strings.Contains(got.Fact, fact) || !strings.Contains(got.Fix, fix) {
		t.Errorf("got %+v, want %v with %q and %q", got, verdict, fact, fix)
	}
}

// wantOnly says that of all findings only these are worse than good.
func wantOnly(t *testing.T, found map[string]store.Finding, checks ...string) {
	t.Helper()
	for name, f := range found {
		if f.Verdict != store.VerdictOK && !slices.Contains(checks, name) {
			t.Errorf("got %+v, want nothing but %q", f, checks)
		}
	}
}

func TestCheckOfAHealthyServer(t *testing.T) {
	t.Parallel()
	found := check(t, ownServer(t).store(t), checks)
	wantOnly(t, found)
	wantFinding(t, found["server"], store.VerdictOK, `standalone. The prefix is "`, "")
	wantFinding(t, found["grace"], store.VerdictOK, "for 15s at least", "")
}

// Check asks for the history of each bucket once, and lets other clients' requests in between.
func TestCheckDisturbsNobody(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	sv.acquaint(t, long)
	conn, err := redisconn.Open(sv.Option)
	if err != nil {
		t.Fatal(err)
	}
	driver := &crowded{Driver: rueidisDriver{conn}}
	st, err := NewWith(driver, WithPrefix(sv.prefix), WithoutLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	sv.Do(t, "CONFIG", "RESETSTAT")
	wantOnly(t, check(t, st, checks))
	if stats := sv.Do(t, "INFO", "commandstats"); !strings.Contains(stats, "cmdstat_info:calls=261,") {
		t.Errorf("got %s, want five INFO and one for each bucket", stats)
	}
	if driver.most == 0 || driver.most > 100 {
		t.Errorf("scripts at once: got %d, want some", driver.most)
	}
}

// A crowded driver notes how many scripts it was given at once.
type crowded struct {
	redisdriver.Driver
	most int
}

func (c *crowded) EvalAll(ctx context.Context, runs []redisdriver.Run) []redisdriver.Result {
	c.most = max(c.most, len(runs))
	return c.Driver.EvalAll(ctx, runs)
}

func TestCheckOfAServerThatEvicts(t *testing.T) {
	t.Parallel()
	sv := ownServer(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	found := check(t, sv.store(t), checks)
	wantOnly(t, found, "eviction")
	wantFinding(t, found["eviction"], store.VerdictWarn, "allkeys-lru", "noeviction")
}

func TestCheckOfAFullServer(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	st := sv.store(t)
	sv.Do(t, "CONFIG", "SET", "maxmemory", "1")
	wantFinding(t, check(t, st, checks)["memory"], store.VerdictFail, "refuses locks", "maxmemory")
}

func TestCheckWithoutAGrace(t *testing.T) {
	t.Parallel()
	found := check(t, ownServer(t, "--appendonly", "no").store(t, WithoutFailoverGrace()), checks)
	wantOnly(t, found, "grace", "persistence")
	wantFinding(t, found["grace"], store.VerdictNote, "is off", "WithoutFailoverGrace")
	wantFinding(t, found["persistence"], store.VerdictWarn, "forgets leases", "appendonly yes")
}

// A user who gives a replica's address is told where the primary is.
func TestCheckOfAReplica(t *testing.T) {
	t.Parallel()
	primary, replica := ownServer(t), ownServer(t)
	replica.follows(t, primary, "sync_full")
	found := check(t, replica.newStore(t), checks)
	wantFinding(t, found["replication"], store.VerdictFail, "127.0.0.1:"+primary.own.Port(), "primary")
}

func TestCheckOfASentinelSet(t *testing.T) {
	t.Parallel()
	sv, nodes := startSentinelSet(t, servers.Config{})
	st := sv.store(t)
	found := check(t, st, checks)
	wantOnly(t, found, "replication")
	wantFinding(t, found["server"], store.VerdictOK, "behind Sentinel", "")
	wantFinding(t, found["replication"], store.VerdictWarn, "1 replica", "min-replicas-to-write")
	for _, node := range nodes {
		node.Do(t, "CONFIG", "SET", "min-replicas-to-write", "1")
	}
	wantFinding(t, check(t, st, checks)["replication"], store.VerdictOK, "of which 1 keeps up", "")
}

// The grace is the one that a request would meet, and looking at it changes nothing.
func TestCheckOfAGrace(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	st := sv.newStore(t)
	found := check(t, st, checks)
	wantOnly(t, found, "grace")
	wantFinding(t, found["grace"], store.VerdictWarn, "in 256 of 256 buckets", "Wait")
	if n := sv.Number(t, "DBSIZE"); n != 0 {
		t.Errorf("keys: got %d, want none", n)
	}
	sv.acquaint(t, long)
	wantFinding(t, check(t, st, checks)["grace"], store.VerdictOK, "Keys are granted", "")

	sv.promote(t)
	was := sv.Do(t, "GET", sv.epoch(7))
	wantFinding(t, check(t, st, checks)["grace"], store.VerdictNote, "256 of 256 buckets of keys were not used since", "")
	if is := sv.Do(t, "GET", sv.epoch(7)); is != was {
		t.Errorf("epoch: got %q, want %q as before", is, was)
	}
	c := join(t, st)
	c.Acquire(redistest.Attempt("key", "a"))
	wantFinding(t, check(t, st, checks)["grace"], store.VerdictWarn, "in 1 of 256 buckets", "Wait")
	wantGrace := func(key string, wantBegun bool, wantErr error) {
		t.Helper()
		left, begun, err := c.Session.(store.GraceSession).Grace(t.Context(), key)
		if !errors.Is(err, wantErr) || err == nil && (begun != wantBegun || left < long/2 || left > long) {
			t.Errorf("%q: got a grace of %v, begun %v, error %v, want up to %v, %v, %v", key, left, begun, err, long, wantBegun, wantErr)
		}
	}
	wantGrace("key", true, nil)
	wantGrace("another", false, nil)
	wantGrace("", false, store.ErrInvalidKey)

	sv.Do(t, "SET", sv.epoch(bucketOf("key")), "something else")
	wantFinding(t, check(t, st, checks)["grace"], store.VerdictFail, "1 of 256", sv.prefix)
	wantGrace("key", false, store.ErrForeignData)
	wantGrace("another", false, nil)
}

func TestCheckWithFewRights(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	sv.acquaint(t, long)
	found := check(t, sv.as(t, "blind", strings.ReplaceAll(rightsOfTheBlind, rightsInCluster, "")).newStore(t), []string{"server", "replication", "eviction", "persistence", "grace", "clock"})
	wantOnly(t, found, "server", "replication", "eviction", "persistence", "grace")
	for name, section := range map[string]string{"server": "server", "replication": "replication", "eviction": "memory", "persistence": "persistence"} {
		wantFinding(t, found[name], store.VerdictNote, "The user may not ask for INFO "+section, "+info|"+section)
	}
	wantFinding(t, found["grace"], store.VerdictWarn, "no guard", "+info|replication")

	// The least rights lack two sections, and what the notes say to add is enough.
	found = check(t, sv.as(t, "locker", documentedRights).newStore(t), checks)
	wantOnly(t, found, "eviction", "persistence")
	wantFinding(t, found["eviction"], store.VerdictNote, "noeviction", "+info|stats")
	wantOnly(t, check(t, sv.as(t, "looker", documentedRights+" +info|stats +info|persistence").newStore(t), checks))

	st := sv.as(t, "nobody", strings.ReplaceAll(documentedRights, "+eval", "-eval")).newStore(t)
	wantFinding(t, check(t, st, []string{"server"})["server"], store.VerdictFail, "denied", "+evalsha")
	st = sv.as(t, "other", "resetkeys ~other* "+documentedRights).newStore(t)
	wantFinding(t, check(t, st, []string{"server"})["server"], store.VerdictFail, "refuses", "key pattern")
}

// In a Cluster each server counts, and the worst is named.
func TestCheckOfACluster(t *testing.T) {
	t.Parallel()
	sv, nodes := ownCluster(t)
	bad := nodes[1]
	bad.Do(t, "CONFIG", "SET", "maxmemory", "100mb")
	bad.Do(t, "CONFIG", "SET", "maxmemory-policy", "volatile-ttl")
	order := slices.Insert(slices.Clone(checks), len(checks)-2, "cluster")
	found := check(t, sv.store(t), order)
	wantOnly(t, found, "eviction")
	wantFinding(t, found["eviction"], store.VerdictWarn, bad.own.Addr+": maxmemory-policy is volatile-ttl", "noeviction")
	wantFinding(t, found["server"], store.VerdictOK, ", and 2 more: Redis", "")
	wantFinding(t, found["cluster"], store.VerdictOK, "state is ok", "")

	found = check(t, sv.as(t, "locker", documentedRights+rightsInCluster, nodes...).newStore(t), order)
	wantFinding(t, found["cluster"], store.VerdictNote, "CLUSTER INFO", "+cluster|info")
	wantFinding(t, found["eviction"], store.VerdictWarn, bad.own.Addr, "noeviction")

	wantFinding(t, check(t, bad.newStore(t), []string{"server"})["server"], store.VerdictFail, "MOVED", "")
}

// On a server that knows little of INFO all is unknown but the clock, which is the bubble's.
func TestCheckOfAClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mini, option := redistest.InBubble(t)
		st, err := Open(option, WithoutLogger(), WithoutFailoverGrace())
		if err != nil {
			t.Fatal(err)
		}
		defer time.Sleep(time.Minute) // rueidis' last timers
		defer st.Close()
		clock := func() (found store.Finding) {
			began := time.Now()
			st.Check(t.Context(), func(f store.Finding) { found = f })
			if took := time.Since(began); took < redischeck.Apart || took > 2*redischeck.Apart {
				t.Errorf("took %v, want %v", took, redischeck.Apart)
			}
			return found
		}
		wantFinding(t, clock(), store.VerdictOK, "runs as that of this host", "")
		mini.SetTime(time.Now())
		wantFinding(t, clock(), store.VerdictWarn, "went on by 0s", "time service")
	})
}

func TestCheckEndsWithItsContext(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	st := sv.newStore(t)
	if err := sv.own.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	st.Check(ctx, func(f store.Finding) { t.Errorf("got %+v, want nothing, for the context has ended", f) })
	if took := time.Since(began); took > time.Second {
		t.Errorf("took %v, want some more than 100ms", took)
	}
	wantFinding(t, check(t, st, []string{"server"})["server"], store.VerdictFail, "has not said", "runs")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v, want some seconds without a deadline", took)
	}
	if err := sv.own.Resume(); err != nil {
		t.Fatal(err)
	}
}

func TestCheckOfNoStore(t *testing.T) {
	wantFinding(t, check(t, new(Store), []string{"server"})["server"], store.VerdictFail, "neither Open nor New", "")
}
