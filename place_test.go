// SPDX-License-Identifier: Apache-2.0

package asynclockgo_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	miniserver "github.com/alicebob/miniredis/v2/server"
	"github.com/google/uuid"
	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/internal/needed"
	"github.com/asynclock/asynclock-go/store/memstore"
	"github.com/asynclock/asynclock-go/store/springredis"
)

// stores is every kind of store. Prepare is called once and returns what opens
// a place for each story.
var stores = []struct {
	name    string
	offers  need
	prepare func(t *testing.T) (open func(t *testing.T) *place)
}{
	{"memstore", queues | told, func(*testing.T) func(*testing.T) *place { return openMemory }},
	{"miniredis", redisItself | told, func(*testing.T) func(*testing.T) *place { return openMiniredis }},
	{"redis", redisItself | told, onServer("ASYNCLOCK_REDIS_URL")},
	{"sentinel", redisItself | told, onServer("ASYNCLOCK_SENTINEL_URL")},
	{"cluster", redisItself | told, onServer("ASYNCLOCK_CLUSTER_URL")},
	{"redis with the least rights by TLS", redisItself | told, onServersForLockers(startAlone)},
	{"sentinel with the least rights by TLS", redisItself | told, onServersForLockers(startSentinelSet)},
	{"cluster with the least rights by TLS", redisItself | told, onServersForLockers(startCluster)},
	{"springredis", anyStore | told, onServerAsSpring("ASYNCLOCK_REDIS_URL")},
	{"postgres", processes | told, onDatabase("ASYNCLOCK_POSTGRES_URL", ownTables)},
	{"mysql", processes, onDatabase("ASYNCLOCK_MYSQL_URL", ownTables)},
	{"Java's table in postgres", anyStore, onDatabase("ASYNCLOCK_POSTGRES_URL", javasTable)},
	{"Java's table in mysql", anyStore, onDatabase("ASYNCLOCK_MYSQL_URL", javasTable)},
	{"zkstore", processes | told, onZooKeeper},
	{"zkstore on an ensemble", processes | told, onEnsemble},
}

const (
	// long is the TTL of what must not expire while a story runs.
	long = 30 * time.Second
	// soon is when what a message announces is there. By a heartbeat it would as
	// a rule come later.
	soon = long / 20
	// short is the TTL of what has to expire. In the last tenth of it the lease has
	// ended and the key has not passed on, so that stories can tell which was first.
	short = 2 * time.Second
	// heartbeat is how often a waiter of that TTL asks again.
	heartbeat = long / 10
	// patience is how long a story waits for what has to happen.
	patience = 30 * time.Second
)

// A place is where one story happens: a deployment of one kind of store, and a
// corner of it that no other story uses.
type place struct {
	*testing.T
	ctx   context.Context // it ends with the story, or when that hangs
	redis *redisPlace     // nil: the store is not in Redis
	// sessions: the store's server knows those, and no TTLs.
	sessions bool
	// url and corner are where a child finds the place, and certificates by what it
	// is let in: see address.
	url, corner, certificates string

	timing *timing

	connect func(*cable) asynclock.Store
}

func newPlace(t *testing.T) *place {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	return &place{T: t, ctx: ctx, timing: newTiming(t)}
}

// openMemory: all clients share one Store, for there is nothing else to share.
func openMemory(t *testing.T) *place {
	t.Helper()
	p := newPlace(t)
	store := memstore.New()
	p.connect = func(c *cable) asynclock.Store {
		line := asynclocktest.Wrap(store)
		c.atCut = func() {
			line.Every(asynclocktest.Any, asynclocktest.Hang)
			line.EveryEvent(asynclocktest.AnyEvent, asynclocktest.Drop)
		}
		return line
	}
	t.Cleanup(func() { wantNothingListed(t, store) })
	return p
}

func wantNothingListed(t *testing.T, store asynclock.Store) {
	t.Helper()
	visitor, err := asynclock.New(store)
	if err != nil {
		t.Fatal(err)
	}
	defer visitor.Close(context.Background())
	await(t, "the store to be empty", func() bool {
		for _, err := range visitor.List(context.Background(), "") {
			if err != nil {
				t.Fatal(err)
			}
			return false
		}
		return true
	})
}

func openMiniredis(t *testing.T) *place {
	t.Helper()
	server := miniredis.RunT(t)
	server.ClockTTL(true) // TTLs run by themselves
	server.Server().SetPreHook(func(peer *miniserver.Peer, command string, _ ...string) bool {
		if command != "CLUSTER" {
			return false
		}
		peer.WriteError("ERR This instance has cluster support disabled") // it claims to be a cluster of one
		return true
	})
	return openRedis(t, address{url: "redis://" + server.Addr()}, "story")
}

// onServer opens places on a server that is running, if there is one.
func onServer(variable string) func(*testing.T) func(*testing.T) *place {
	return func(t *testing.T) func(*testing.T) *place {
		t.Helper()
		url := needed.Variable(t, variable)
		return func(t *testing.T) *place {
			t.Helper()
			return openRedis(t, address{url: url}, "story-"+uuid.NewString())
		}
	}
}

// onServerAsSpring opens places that are registries of Java.
func onServerAsSpring(variable string) func(*testing.T) func(*testing.T) *place {
	return func(t *testing.T) func(*testing.T) *place {
		t.Helper()
		url := needed.Variable(t, variable)
		return func(t *testing.T) *place {
			t.Helper()
			return openSpring(t, address{url: url}, "story-"+uuid.NewString())
		}
	}
}

func openSpring(t *testing.T, at address, registryKey string) *place {
	t.Helper()
	p := newPlace(t)
	connect := func(option rueidis.ClientOption) *springredis.Store {
		store, err := springredis.Open(option, registryKey, springredis.WithLockType(springredis.PubSubLock))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(store.Close)
		return store
	}
	p.connect = func(c *cable) asynclock.Store {
		option := redisOption(t, at)
		option.DialCtxFn = c.dial
		return connect(option)
	}
	visitor := connect(redisOption(t, at))
	t.Cleanup(func() { wantNothingListed(t, visitor) })
	return p
}

// client returns a client on a connection of its own, as another process would
// have.
func (p *place) client(options ...asynclock.ClientOption) *asynclock.Client {
	p.Helper()
	return p.clientOn(new(cable), options...)
}

// clientOn is client with a connection that can be cut.
func (p *place) clientOn(c *cable, options ...asynclock.ClientOption) *asynclock.Client {
	p.Helper()
	options = append([]asynclock.ClientOption{asynclock.WithTTL(long)}, options...)
	client, err := asynclock.New(p.connect(c), options...)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if c.isCut() {
			cancel() // it has nobody to say goodbye to
		}
		if err := client.Close(ctx); err != nil && !c.isCut() {
			p.Errorf("close: got %v, want no error", err)
		}
	})
	return client
}

// clients returns n of them.
func (p *place) clients(n int, options ...asynclock.ClientOption) []*asynclock.Client {
	p.Helper()
	all := make([]*asynclock.Client, n)
	for i := range all {
		all[i] = p.client(options...)
	}
	return all
}

// lock takes a key that is free or will be.
func (p *place) lock(c *asynclock.Client, key string, options ...asynclock.LockOption) *asynclock.Lease {
	p.Helper()
	lease, err := c.Lock(p.ctx, key, options...)
	if err != nil {
		p.Fatal(err)
	}
	return lease
}

// claim waits for a future.
func (p *place) claim(pending <-chan asynclock.Result) *asynclock.Lease {
	p.Helper()
	select {
	case got := <-pending:
		lease, err := got.Lease()
		if err != nil {
			p.Fatal(err)
		}
		return lease
	case <-p.ctx.Done():
		p.Fatal("the future was never fulfilled")
		return nil
	}
}

// unlock gives a key back that is still held.
func (p *place) unlock(l *asynclock.Lease) {
	p.Helper()
	if err := l.Unlock(p.ctx); err != nil {
		p.Errorf("unlock: got %v, want no error", err)
	}
}

// awaitWaiters waits until n clients are queued.
func (p *place) awaitWaiters(c *asynclock.Client, key string, n int) {
	p.Helper()
	await(p.T, "waiters to queue", func() bool {
		info, err := c.Inspect(p.ctx, key)
		return err == nil && info.Waiters == n
	})
}

// awaitEnd waits until a lease has ended.
func (p *place) awaitEnd(l *asynclock.Lease) {
	p.Helper()
	select {
	case <-l.Done():
	case <-p.ctx.Done():
		p.Fatal("the lease never ended")
	}
}

// remains reports whether what is said to remain of the TTL long can be true, soon
// after it was set.
func (p *place) remains(got time.Duration) bool {
	if p.sessions {
		return got < 0 // unknown
	}
	return got > long/2 && got <= long
}

// await looks again and again until something is so.
func await(t *testing.T, what string, isSo func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !isSo(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// An unprotected number is read and written in two steps, with room for others
// in between. It is atomic only for the race detector, which can't see a lock
// that is in another process.
type unprotected struct{ n atomic.Int64 }

func (u *unprotected) bump() {
	n := u.n.Load()
	runtime.Gosched()
	u.n.Store(n + 1)
}
