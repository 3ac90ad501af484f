// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// A stoppable is a deployment of which one server will be stopped.
type stoppable struct {
	*server

	part      *servers.Redis
	on        func(key string) bool // whether the part has the key
	elsewhere bool                  // others have keys, too
	replaced  bool                  // another server takes the part's place
}

func everyKey(string) bool { return true }

// standalone is a server without others.
func standalone(t *testing.T) stoppable {
	t.Helper()
	sv := ownServer(t)
	return stoppable{server: sv, part: sv.own, on: everyKey}
}

// amongOthers start a server that has others beside it.
var amongOthers = map[string]func(*testing.T) stoppable{
	"a node of a Cluster": func(t *testing.T) stoppable {
		sv, nodes := startCluster(t, servers.Config{Patience: time.Minute}, 3)
		on := func(key string) bool { return owner(t, nodes, sv.redisKey(key, 'l')) == 1 }
		return stoppable{server: sv, part: nodes[1].own, on: on, elsewhere: true}
	},
	"the primary of a Sentinel set": func(t *testing.T) stoppable {
		sv, nodes := startSentinelSet(t, servers.Config{Patience: time.Minute})
		return stoppable{server: sv, part: nodes[0].own, on: everyKey}
	},
	"the primary of a Sentinel set, until a replica is promoted": func(t *testing.T) stoppable {
		sv, nodes := startSentinelSet(t, servers.Config{})
		return stoppable{server: sv, part: nodes[0].own, on: everyKey, replaced: true}
	},
}

// sharedStore uses a client of the application. That gives its connection up, too, while the server is
// silent.
func (sv *server) sharedStore(t *testing.T) *Store {
	t.Helper()
	option := sv.Option
	option.ConnWriteTimeout = 2 * time.Second
	client, err := rueidis.NewClient(option)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	st, err := New(client, WithPrefix(sv.prefix), WithoutLogger(), WithoutFailoverGrace())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	return st
}

// A context bounds Lock and Unlock of keys whose server is silent, wherever that server is. Keys of
// other servers are locked as ever.
func TestAContextBoundsCallsWhereverAServerHasStopped(t *testing.T) {
	t.Parallel()
	for name, start := range amongOthers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := start(t)
			boundsCalls(t, d, d.newStore(t, WithoutFailoverGrace()))
		})
	}
}

// The same holds for the application's own client.
func TestAContextBoundsCallsOfAClientThatIsShared(t *testing.T) {
	t.Parallel()
	all := maps.Clone(amongOthers)
	all["a server alone"] = standalone
	for name, start := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := start(t)
			boundsCalls(t, d, d.sharedStore(t))
		})
	}
}

func boundsCalls(t *testing.T, d stoppable, st *Store) {
	t.Helper()
	locks, err := asynclock.New(st, asynclock.WithTTL(time.Minute)) // longer than the silence
	if err != nil {
		t.Fatal(err)
	}
	var there, elsewhere []string
	for i := 0; len(there) < 300 || d.elsewhere && len(elsewhere) < 100; i++ {
		if key := fmt.Sprint("key ", i); d.on(key) {
			there = append(there, key)
		} else {
			elsewhere = append(elsewhere, key)
		}
	}
	held := make([]*asynclock.Lease, 20)
	for i := range held {
		if held[i], err = locks.Lock(t.Context(), there[i]); err != nil {
			t.Fatal(err)
		}
	}
	there = there[len(held):]
	if err := d.part.Pause(); err != nil {
		t.Fatal(err)
	}
	atOnce := boundedCalls{T: t, answered: d.replaced}
	for _, key := range there {
		atOnce.lock(locks, key)
	}
	atOnce.wantBounded()
	calls := boundedCalls{T: t, answered: d.replaced}
	var others durations
	for i := range 50 * 6 {
		time.Sleep(time.Second / 50)
		calls.lock(locks, there[i%len(there)])
		if i%15 == 0 {
			calls.unlock(held[i/15])
		}
		if i%3 == 0 && d.elsewhere {
			calls.Go(func() { others.note(locksAndUnlocks(t, locks, elsewhere[i/3])) })
		}
	}
	calls.wantOnTime()
	if err := d.part.Resume(); err != nil {
		t.Fatal(err)
	}
	_, most := calls.waits.sorted()
	if _, got := others.sorted(); got > time.Second+3*most {
		t.Errorf("a key of another server took %v, want at most %v", got, time.Second+3*most)
	}
	locksAndUnlocks(t, locks, there[0])
	if err := locks.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// locksAndUnlocks says how long that takes.
func locksAndUnlocks(t *testing.T, locks *asynclock.Client, key string) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	lease, err := locks.Lock(ctx, key)
	if err != nil {
		t.Errorf("Lock: got %v, want a lease", err)
		return 0
	}
	if err := lease.Unlock(ctx); err != nil {
		t.Errorf("Unlock: got %v, want no error", err)
	}
	return time.Since(began)
}
