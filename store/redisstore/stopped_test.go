// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
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

// stoppables start a server, alone or with others beside it.
var stoppables = map[string]func(*testing.T) stoppable{
	"a server alone": func(t *testing.T) stoppable {
		sv := ownServer(t)
		return stoppable{server: sv, part: sv.own, on: everyKey}
	},
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

// A context bounds Lock and Unlock of keys whose server is silent, wherever that server is, and whosever
// the connection is. At first very many callers come at once. Then there are 50 calls a second, while rueidis gives
// the connection up and dials another one. Keys of other servers are locked as ever.
func TestAContextBoundsCallsWhereverAServerHasStopped(t *testing.T) {
	t.Parallel()
	for name, start := range stoppables {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := start(t)
			boundsCalls(t, d, d.newStore(t, WithoutFailoverGrace()))
		})
		t.Run(name+", by the application's client", func(t *testing.T) {
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

// boundedCalls are calls under contexts that end soon. Beside each of them a goroutine only waits for
// such a context, which shows how late a busy machine makes anybody.
type boundedCalls struct {
	*testing.T
	sync.WaitGroup

	answered              bool // some server may answer
	locks, unlocks, waits durations
}

const (
	callsEnd    = 100 * time.Millisecond // how long the context of a bounded call lasts
	unlockGrace = 50 * time.Millisecond  // for how much longer Unlock waits
)

// lock calls Lock, which returns when its context ends.
func (b *boundedCalls) lock(locks *asynclock.Client, key string) {
	b.bounded(&b.locks, func(ctx context.Context) error {
		lease, err := locks.Lock(ctx, key)
		if err == nil {
			lease.UnlockChan(context.WithoutCancel(ctx))
		}
		return err
	})
}

// unlock calls Unlock.
func (b *boundedCalls) unlock(lease *asynclock.Lease) { b.bounded(&b.unlocks, lease.Unlock) }

func (b *boundedCalls) bounded(took *durations, call func(context.Context) error) {
	b.measured(took, func(ctx context.Context) {
		err := call(ctx)
		switch {
		case errors.Is(err, context.DeadlineExceeded), errors.Is(err, asynclock.ErrOutcomeUnknown), errors.Is(err, asynclock.ErrUnreachable):
		case b.answered && (err == nil || errors.Is(err, asynclock.ErrLost)):
		default:
			b.Errorf("got %v, want DeadlineExceeded, ErrOutcomeUnknown or ErrUnreachable", err)
		}
	})
	b.measured(&b.waits, func(ctx context.Context) { <-ctx.Done() })
}

func (b *boundedCalls) measured(took *durations, do func(context.Context)) {
	b.Go(func() {
		began := time.Now()
		ctx, cancel := context.WithTimeout(b.Context(), callsEnd)
		defer cancel()
		do(ctx)
		took.note(time.Since(began))
	})
}

// wantBounded waits for the calls. None takes much longer than the slowest of those who only wait.
func (b *boundedCalls) wantBounded() {
	b.Helper()
	b.Wait()
	_, most := b.waits.sorted()
	most = 100*time.Millisecond + 3*most
	for what, took := range map[string]*durations{"Lock": &b.locks, "Unlock": &b.unlocks} {
		if _, got := took.sorted(); got > most {
			b.Errorf("a call of %s took %v, want at most %v", what, got, most)
		}
	}
}

// wantOnTime is wantBounded for calls that do not come all at once. Half of them end within 50 ms after
// they should, if those who only wait are on time.
func (b *boundedCalls) wantOnTime() {
	b.Helper()
	b.wantBounded()
	usual, _ := b.waits.sorted()
	limit := 50*time.Millisecond + 3*(usual-callsEnd)
	if got, _ := b.locks.sorted(); got > callsEnd+limit {
		b.Errorf("half of the calls of Lock took %v or more, want at most %v", got, callsEnd+limit)
	}
	if got, _ := b.unlocks.sorted(); got > callsEnd+unlockGrace+limit {
		b.Errorf("half of the calls of Unlock took %v or more, want at most %v", got, callsEnd+unlockGrace+limit)
	}
}

// durations are how long each of some took.
type durations struct {
	mu  sync.Mutex
	all []time.Duration
}

func (d *durations) note(took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, took)
}

// sorted returns the middle one and the slowest, or 0 if there are none.
func (d *durations) sorted() (middle, slowest time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.all) == 0 {
		return 0, 0
	}
	slices.Sort(d.all)
	return d.all[len(d.all)/2], d.all[len(d.all)-1]
}
