// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store"
)

// A pair is a primary and its replica, with whatever promotes the latter.
type pair struct {
	sv               *server // as clients see them
	primary, replica *server
	promote          func()
}

// eachPair runs a test where a Sentinel fails over, and in a Cluster whose replica
// takes over without asking anybody.
func eachPair(t *testing.T, test func(*testing.T, *pair)) {
	t.Helper()
	for name, start := range map[string]func(*testing.T) *pair{"Sentinel": sentinelPair, "Cluster": clusterPair} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

func sentinelPair(t *testing.T) *pair {
	t.Helper()
	sv, nodes := startSentinelSet(t, servers.Config{})
	return &pair{sv: sv, primary: nodes[0], replica: nodes[1], promote: nodes[0].own.Kill}
}

func clusterPair(t *testing.T) *pair {
	t.Helper()
	sv, nodes := ownCluster(t)
	primary := nodes[owner(t, nodes, sv.redisKey("key", 'l'))]
	p := &pair{sv: sv, primary: primary, replica: sv.addReplica(t, primary)}
	p.promote = func() { p.replica.Do(t, "CLUSTER", "FAILOVER", "TAKEOVER") }
	return p
}

// inStep waits until the replica has all that the primary has.
func (p *pair) inStep(t *testing.T) {
	t.Helper()
	kit.Eventually(t, "the replica is in step", func() bool {
		ours, theirs := p.primary.fact("master_repl_offset"), p.replica.fact("slave_repl_offset")
		return p.replica.fact("master_link_status") == "up" && ours == theirs
	})
}

// cut ends the replication. The replica may not come back, having no password.
func (p *pair) cut(t *testing.T) {
	t.Helper()
	p.inStep(t)
	p.primary.Do(t, "CONFIG", "SET", "requirepass", "not for replicas")
	p.primary.Do(t, "CLIENT", "KILL", "TYPE", "replica")
	kit.Eventually(t, "the replica is cut off", func() bool { return p.replica.fact("master_link_status") == "down" })
}

// fact is what INFO replication says by that name; nothing if the server is away,
// as it may be while it changes its role.
func (sv *server) fact(name string) string {
	text, err := sv.Try("INFO", "replication")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return value
		}
	}
	return ""
}

// failOver promotes the replica, which must have missed the holding of key.
func (p *pair) failOver(t *testing.T) {
	t.Helper()
	_, _ = p.replica.Try("READONLY") // in a Cluster it would redirect
	if value := p.replica.Do(t, "GET", p.sv.redisKey("key", 'l')); value != "" && !isVacancy(value) {
		t.Fatalf("the replica has %q, and was to miss the holding", value)
	}
	p.promote()
	kit.Eventually(t, "the replica is promoted", func() bool { return p.replica.fact("role") == "master" })
}

// locks opens a client of its own store, that has locked already: its connections
// are there, and so is the epoch. The grace is as long as the longest TTL of any client.
func (p *pair) locks(t *testing.T, ttl time.Duration, opts ...Option) *asynclock.Client {
	t.Helper()
	c := newClient(t, p.sv.newStore(t, opts...), asynclock.WithTTL(ttl))
	if err := c.WithLock(t.Context(), "key", func(context.Context, *asynclock.Lease) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return c
}

// A resource keeps the largest token it has seen and refuses smaller ones.
type resource struct{ largest int64 }

func (r *resource) write(token int64) bool {
	if token < r.largest {
		return false
	}
	r.largest = token
	return true
}

// A replica that missed the grant grants the key to nobody while the first holder
// trusts its lease, even if that one can't say so.
func TestAFailoverMakesNoTwoHolders(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, p *pair) {
		const ttl = 5 * time.Second
		p.sv.acquaint(t, ttl)
		a, b := p.locks(t, ttl, WithFailoverGrace(ttl)), p.locks(t, ttl, WithFailoverGrace(ttl))
		p.cut(t)
		first, err := a.Lock(t.Context(), "key", asynclock.WithRenewal(false))
		if err != nil {
			t.Fatal(err)
		}
		p.failOver(t)
		second := lockPatiently(t, b)
		if first.Valid(0) {
			t.Errorf("the key was granted under token %d while the lease of token %d was trusted", second.Token(), first.Token())
		}
		if second.Token() <= first.Token() {
			t.Errorf("token: got %d, want more than %d", second.Token(), first.Token())
		}
	})
}

// The grace in the test above prevents two holders. Without the grace only tokens tell the
// two apart.
func TestWithoutTheGraceAFailoverMakesTwoHolders(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, p *pair) {
		a, b := p.locks(t, asynclock.DefaultTTL, WithoutFailoverGrace()), p.locks(t, asynclock.DefaultTTL, WithoutFailoverGrace())
		p.cut(t)
		first, err := a.Lock(t.Context(), "key", asynclock.WithTTL(10*time.Minute), asynclock.WithRenewal(false))
		if err != nil {
			t.Fatal(err)
		}
		p.failOver(t)
		second := lockPatiently(t, b)
		if !first.Valid(0) {
			t.Fatalf("the first lease ended: %v; want two that are trusted", first.Err())
		}
		var fenced resource
		if !fenced.write(first.Token()) || !fenced.write(second.Token()) {
			t.Error("the resource refuses the writes of one after the other")
		}
		if fenced.write(first.Token()) {
			t.Error("the resource accepts the write of the first holder after that of the second")
		}
	})
}

// The holder of a key goes on holding it: its renewal writes back what is missing.
func TestAHolderIsRememberedAgainAfterAFailover(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, p *pair) {
		p.sv.acquaint(t, long)
		a, b := p.locks(t, asynclock.DefaultTTL), p.locks(t, asynclock.DefaultTTL)
		p.cut(t)
		lease, err := a.Lock(t.Context(), "key", asynclock.WithTTL(10*time.Minute), asynclock.WithDescription("the first"))
		if err != nil {
			t.Fatal(err)
		}
		p.failOver(t)
		kit.Eventually(t, "the holding is written anew", func() bool {
			_ = lease.Renew(t.Context(), 10*time.Minute)
			info, err := b.Inspect(t.Context(), "key")
			return err == nil && info.Held
		})
		info, err := b.Inspect(t.Context(), "key")
		if err != nil || info.Token != lease.Token() || info.Holder != "the first" || info.Remaining < 9*time.Minute {
			t.Errorf("got %+v, %v; want it held by the first under token %d for 10 minutes", info, err, lease.Token())
		}
		if _, err := b.TryLock(t.Context(), "key"); !errors.Is(err, asynclock.ErrHeld) {
			t.Errorf("TryLock: got %v, want ErrHeld", err)
		}
		if err := lease.Unlock(t.Context()); err != nil {
			t.Errorf("Unlock: got %v, want no error", err)
		}
		if _, err := b.TryLock(t.Context(), "key"); !errors.Is(err, store.ErrUnreachable) || errors.Is(err, asynclock.ErrHeld) {
			t.Errorf("TryLock of a free key: got %v, want ErrUnreachable: others may be held by who knows", err)
		}
		p.sv.endGrace(t, "key")
		next := lockPatiently(t, b)
		if next.Token() <= lease.Token() {
			t.Errorf("token: got %d, want more than %d", next.Token(), lease.Token())
		}
	})
}

// lockPatiently waits through a failover, in which the server may be away for longer
// than a waiter has patience.
func lockPatiently(t *testing.T, c *asynclock.Client) (lease *asynclock.Lease) {
	t.Helper()
	for end := time.Now().Add(time.Minute); lease == nil; {
		got, err := c.Lock(t.Context(), "key")
		if err != nil && (!errors.Is(err, store.ErrUnreachable) || time.Now().After(end)) {
			t.Fatalf("Lock: got %v", err)
		}
		lease = got
	}
	return lease
}

// endGrace makes the server believe that the grace is over.
func (sv *server) endGrace(t *testing.T, key string) {
	t.Helper()
	name := sv.epoch(bucketOf(key))
	fields := strings.Fields(sv.insist(t, "GET", name))
	if len(fields) != epochFields {
		t.Fatalf("the epoch of %q is %q, want %d fields", key, fields, epochFields)
	}
	fields[1] = "1"
	sv.insist(t, "SET", name, strings.Join(fields, " "))
}

// insist is Do for a Cluster that has just failed over. A node may hear from the old
// primary that it is none any more before it hears of the new one. For up to a second
// then, its slots are nobody's there.
func (sv *server) insist(t *testing.T, words ...string) (said string) {
	t.Helper()
	var err error
	kit.Eventually(t, "the slot is served", func() bool {
		said, err = sv.Try(words...)
		return err == nil || !strings.Contains(err.Error(), "CLUSTERDOWN")
	})
	if err != nil {
		t.Fatalf("%q: %v", words, err)
	}
	return said
}
