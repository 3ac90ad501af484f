// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"net"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// These events happen to servers after a client has left a key vacant. The connection to the server that
// is asked is kept, except through a restart, so the client has no sign of it. The request is as dangerous as can be: it is
// based on a vacancy and a history that were true just before.

// A past is what happens to servers between a release and the next request for the key.
type past struct {
	start func(*testing.T) *pair
	// happens returns the server that is asked then. rival takes the key of a server. Without
	// it nothing is lost.
	happens func(t *testing.T, p *pair, rival func(*server)) *server
	want    outcome
	same    bool // whether the server asked has the history that the client saw
	cut     bool // whether what happens ends the connections to the server asked
}

// An outcome is how a request ends, in a word.
type outcome string

const (
	taken   outcome = "granted by take.lua"
	granted outcome = "granted by the rest"
	inGrace outcome = "grace"
	held    outcome = "held"
	refused outcome = "refused" // by the server
)

func outcomeOf(got store.AcquireReply, byTake bool) outcome {
	switch {
	case byTake:
		return taken
	case got.Status == store.Granted:
		return granted
	case got.Grace > 0:
		return inGrace
	case got.Status == store.Held:
		return held
	}
	return refused
}

var pasts = map[string]past{
	"nothing": {start: alone, want: taken, same: true, happens: func(_ *testing.T, p *pair, _ func(*server)) *server {
		return p.primary
	}},
	"a rival, whom the server knows": {start: alone, want: held, same: true, happens: func(_ *testing.T, p *pair, rival func(*server)) *server {
		rival(p.primary)
		return p.primary
	}},
	"restart with an older RDB": {start: alone, want: inGrace, cut: true, happens: func(t *testing.T, p *pair, rival func(*server)) *server {
		p.primary.Do(t, "SAVE")
		rival(p.primary)
		p.primary.own.Kill()
		p.primary.restart(t)
		return p.primary
	}},
	"the replica is asked": {start: replicated, want: refused, same: true, happens: func(t *testing.T, p *pair, rival func(*server)) *server {
		p.cut(t)
		rival(p.primary)
		return p.replica
	}},
	"the replica is promoted": {start: replicated, want: inGrace, happens: func(t *testing.T, p *pair, rival func(*server)) *server {
		p.cut(t)
		rival(p.primary)
		p.replica.leads(t)
		return p.replica
	}},
	"the replica is promoted and has missed nothing": {start: replicated, want: inGrace, happens: func(t *testing.T, p *pair, _ func(*server)) *server {
		p.inStep(t)
		p.replica.leads(t)
		return p.replica
	}},
	"the primary is demoted": {start: replicated, want: refused, happens: func(t *testing.T, p *pair, _ func(*server)) *server {
		p.inStep(t)
		p.replica.leads(t)
		p.primary.follows(t, p.replica, "sync_partial_ok")
		return p.primary
	}},
	"demoted, and promoted again after a partial resync": {start: replicated, want: inGrace, happens: func(t *testing.T, p *pair, rival func(*server)) *server {
		p.inStep(t)
		p.replica.leads(t)
		p.primary.follows(t, p.replica, "sync_partial_ok")
		p.reversed().cut(t)
		rival(p.replica) // which leads meanwhile
		p.primary.leads(t)
		return p.primary
	}},
	"demoted, and promoted again after a full resync": {start: replicated, want: inGrace, happens: func(t *testing.T, p *pair, rival func(*server)) *server {
		p.cut(t)
		rival(p.primary) // of which the resync leaves nothing
		p.replica.leads(t)
		p.primary.follows(t, p.replica, "sync_full")
		p.primary.leads(t)
		return p.primary
	}},
	"demoted and promoted in one write": {start: alone, want: inGrace, happens: func(t *testing.T, p *pair, _ func(*server)) *server {
		follow := p.primary.Raw.B().Arbitrary("REPLICAOF", "127.0.0.1", "1").Build()
		lead := p.primary.Raw.B().Arbitrary("REPLICAOF", "NO", "ONE").Build()
		for _, result := range p.primary.Raw.DoMulti(t.Context(), follow, lead) {
			if err := result.Error(); err != nil {
				t.Fatal(err)
			}
		}
		return p.primary
	}},
	"data read again": {start: debuggable, want: taken, same: true, happens: func(t *testing.T, p *pair, _ func(*server)) *server {
		p.primary.Do(t, "DEBUG", "RELOAD")
		return p.primary
	}},
	"data read again, with a rival": {start: debuggable, want: held, same: true, happens: func(t *testing.T, p *pair, rival func(*server)) *server {
		rival(p.primary)
		p.primary.Do(t, "DEBUG", "RELOAD")
		return p.primary
	}},
	"another id": {start: debuggable, want: inGrace, happens: func(t *testing.T, p *pair, _ func(*server)) *server {
		p.primary.Do(t, "DEBUG", "CHANGE-REPL-ID")
		return p.primary
	}},
	"CLUSTER FAILOVER": {start: clusterPair, want: inGrace, happens: func(t *testing.T, p *pair, _ func(*server)) *server {
		p.replica.takesOver(t, "CLUSTER", "FAILOVER")
		return p.replica
	}},
	"CLUSTER FAILOVER, and the old one is asked": {start: clusterPair, want: refused, happens: func(t *testing.T, p *pair, _ func(*server)) *server {
		p.replica.takesOver(t, "CLUSTER", "FAILOVER")
		p.reversed().inStep(t)
		return p.primary
	}},
	"CLUSTER FAILOVER, and back": {start: clusterPair, want: inGrace, happens: func(t *testing.T, p *pair, _ func(*server)) *server {
		p.replica.takesOver(t, "CLUSTER", "FAILOVER")
		p.reversed().areKnown(t)
		p.primary.takesOver(t, "CLUSTER", "FAILOVER")
		return p.primary
	}},
	"CLUSTER FAILOVER TAKEOVER": {start: clusterPair, want: inGrace, happens: func(t *testing.T, p *pair, rival func(*server)) *server {
		p.cut(t)
		rival(p.primary)
		p.replica.takesOver(t, "CLUSTER", "FAILOVER", "TAKEOVER")
		return p.replica
	}},
	"CLUSTER FAILOVER TAKEOVER, and back": {start: clusterPair, want: inGrace, happens: func(t *testing.T, p *pair, rival func(*server)) *server {
		p.cut(t)
		rival(p.primary)
		p.replica.takesOver(t, "CLUSTER", "FAILOVER", "TAKEOVER")
		p.reversed().areKnown(t)
		p.primary.takesOver(t, "CLUSTER", "FAILOVER", "TAKEOVER")
		return p.primary
	}},
}

// alone is one server, which has no replica.
func alone(t *testing.T) *pair {
	t.Helper()
	sv := ownServer(t)
	return &pair{sv: sv, primary: sv}
}

// debuggable is alone, and takes DEBUG.
func debuggable(t *testing.T) *pair {
	t.Helper()
	p := alone(t)
	if _, err := p.primary.Try("DEBUG", "SLEEP", "0"); err != nil { // by default since Redis 7
		p.primary.own.Args = append(p.primary.own.Args, "--enable-debug-command", "yes")
		p.primary.own.Kill()
		p.primary.restart(t)
	}
	return p
}

// replicated is a primary and its replica, without anything that promotes it. The primary sends
// nothing by itself, so that it and a replica that was promoted may agree on all they have.
func replicated(t *testing.T) *pair {
	t.Helper()
	sv := ownServer(t, "--repl-ping-replica-period", "3600")
	p := &pair{sv: sv, primary: sv, replica: ownServer(t, "--repl-ping-replica-period", "3600")}
	p.replica.follows(t, p.primary, "sync_full")
	return p
}

// reversed is the pair after the replica was promoted.
func (p *pair) reversed() *pair { return &pair{sv: p.sv, primary: p.replica, replica: p.primary} }

// leads makes a server a primary.
func (sv *server) leads(t *testing.T) {
	t.Helper()
	sv.Do(t, "REPLICAOF", "NO", "ONE")
	kit.Eventually(t, "the server is a primary", func() bool { return sv.fact("role") == "master" })
}

// follows makes a server the other's replica. The resync has to be of the kind that INFO stats
// counts by that name.
func (sv *server) follows(t *testing.T, primary *server, kind string) {
	t.Helper()
	before := primary.resyncs(t, kind)
	host, port, err := net.SplitHostPort(primary.own.Addr)
	if err != nil {
		t.Fatal(err)
	}
	sv.Do(t, "REPLICAOF", host, port)
	(&pair{primary: primary, replica: sv}).inStep(t)
	if primary.resyncs(t, kind) == before {
		t.Fatalf("resync: got no %s, want one", kind)
	}
}

func (sv *server) resyncs(t *testing.T, kind string) string {
	t.Helper()
	facts, err := sv.own.Facts(t.Context(), "INFO", "stats")
	if err != nil {
		t.Fatal(err)
	}
	return facts[kind]
}

// areKnown waits until a Cluster's primary knows that the other one is its replica, and is in step
// with it. Before that it ignores a replica that wants to take over.
func (p *pair) areKnown(t *testing.T) {
	t.Helper()
	id := p.primary.Do(t, "CLUSTER", "MYID")
	kit.Eventually(t, "the primary knows its replica", func() bool {
		replicas, err := p.primary.Try("CLUSTER", "REPLICAS", id)
		return err == nil && replicas != "[]"
	})
	p.inStep(t)
}

// takesOver makes a Cluster's replica a master, by this command, and waits until it serves.
func (sv *server) takesOver(t *testing.T, command ...string) {
	t.Helper()
	sv.Do(t, command...)
	kit.Eventually(t, "the replica is promoted", func() bool { return sv.fact("role") == "master" })
	sv.insist(t, "GET", sv.redisKey("key", 'l'))
}

// No server grants a key by take.lua if it may have forgotten a holder meanwhile.
func TestAVacancyCountsInTheHistoryInWhichItWasSeen(t *testing.T) {
	t.Parallel()
	for name, row := range pasts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := row.start(t)
			p.sv.acquaint(t, long)
			stores, rivals := make(map[*server]*Store), make(map[*server]*client)
			for _, node := range []*server{p.primary, p.replica} {
				if node != nil {
					node.prefix = p.sv.prefix
					stores[node] = node.newStore(t)
					rivals[node] = join(t, node.newStore(t, WithoutFailoverGrace()))
				}
			}
			c := join(t, stores[p.primary])
			c.leaves("key", "a")
			late := c.takes(redistest.Attempt("key", "late"))
			history := stores[p.primary].sightings[bucketOf("key")].Load().history
			if id := p.primary.fact("master_replid"); history != id {
				t.Fatalf("history seen: got %q, want %q", history, id)
			}
			asked := row.happens(t, p, func(at *server) { rivals[at].Hold("key", "rival") })
			if same := asked.fact("master_replid") == history; same != row.same {
				t.Errorf("the server asked has the same history: got %v, want %v", same, row.same)
			}
			got, byTake := late.arrives(t.Context(), stores[asked])
			for range 2 { // it may have been the first to notice that a connection had ended, and the store has two
				if row.cut && errors.Is(got.Err, store.ErrOutcomeUnknown) {
					late.in[0].answered = false
					got, byTake = late.arrives(t.Context(), stores[asked])
				}
			}
			if outcome := outcomeOf(got, byTake); outcome != row.want {
				t.Errorf("got %+v, %s; want %s", got, outcome, row.want)
			}
		})
	}
}
