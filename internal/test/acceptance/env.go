// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/faultconn"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store"
)

const (
	// long is the TTL of what must not expire while a story runs.
	long = 30 * time.Second
	// soon is how quickly the effect of a message must show. A heartbeat would usually bring
	// it later.
	soon = long / 20
	// short is the TTL of what has to expire. In the last tenth of it the lease has
	// ended and the key has not passed on, so that stories can tell which was first.
	short = 2 * time.Second
	// heartbeat is how often a waiter with the TTL long polls.
	heartbeat = long / 10
	// patience is how long a story waits for what has to happen. It ends a story that hangs, also on a slow machine.
	patience = 2 * time.Minute
)

// An Env is where one story runs: a deployment of one kind of store, and an area of it
// that no other story uses.
type Env struct {
	*testing.T

	// Connect opens the store for one more client, by a line that can be cut.
	Connect func(*faultconn.Line) store.Store
	// Sessions: the store's server knows sessions, and no TTLs.
	Sessions bool
	// URL and Area are where another process finds the store. Empty: no other can.
	URL, Area string

	encryption *servers.Encryption // of the servers, also for such a process
	ctx        context.Context     //nolint:containedctx // of all calls of a story: it ends with the story, or when that hangs
	redis      *redisEnv           // nil: the store is not in Redis
	timing     *timing
}

// NewEnv makes one without a store.
func NewEnv(t *testing.T) *Env {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	return &Env{T: t, ctx: ctx, timing: newTiming(t)}
}

// WantNothingListed waits until nobody holds or waits in the store.
func WantNothingListed(t *testing.T, store store.Store) {
	t.Helper()
	visitor, err := asynclock.New(store, asynclock.WithoutLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer visitor.Close(context.Background())
	kit.Eventually(t, "the store to be empty", func() bool {
		for _, err := range visitor.List(context.Background(), "") {
			if err != nil {
				t.Fatal(err)
			}
			return false
		}
		return true
	})
}

// client returns a client on a connection of its own, as another process would
// have.
func (env *Env) client(options ...asynclock.ClientOption) *asynclock.Client {
	env.Helper()
	return env.clientOn(new(faultconn.Line), options...)
}

// clientOn is client with a connection that can be cut.
func (env *Env) clientOn(c *faultconn.Line, options ...asynclock.ClientOption) *asynclock.Client {
	env.Helper()
	options = append([]asynclock.ClientOption{asynclock.WithTTL(long)}, options...)
	client, err := asynclock.New(env.Connect(c), append([]asynclock.ClientOption{asynclock.WithoutLogger()}, options...)...)
	if err != nil {
		env.Fatal(err)
	}
	env.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if c.IsCut() {
			cancel() // it has nobody to say goodbye to
		}
		if err := client.Close(ctx); err != nil && !c.IsCut() {
			env.Errorf("close: got %v, want no error", err)
		}
	})
	return client
}

// clients returns n of them.
func (env *Env) clients(n int, options ...asynclock.ClientOption) []*asynclock.Client {
	env.Helper()
	all := make([]*asynclock.Client, n)
	for i := range all {
		all[i] = env.client(options...)
	}
	return all
}

// lock takes a key that is free or will be.
func (env *Env) lock(c *asynclock.Client, key string, options ...asynclock.LockOption) *asynclock.Lease {
	env.Helper()
	lease, err := again(env.ctx, func() (*asynclock.Lease, error) { return c.Lock(env.ctx, key, options...) })
	if err != nil {
		env.Fatal(err)
	}
	return lease
}

func (env *Env) tryLock(c *asynclock.Client, key string, options ...asynclock.LockOption) (*asynclock.Lease, error) {
	return again(env.ctx, func() (*asynclock.Lease, error) { return c.TryLock(env.ctx, key, options...) })
}

// again makes a call again while the store has not answered in time, as on a busy machine.
func again(ctx context.Context, call func() (*asynclock.Lease, error)) (*asynclock.Lease, error) {
	for {
		lease, err := call()
		if !errors.Is(err, asynclock.ErrUnreachable) || ctx.Err() != nil {
			return lease, err
		}
		select { // a store that refuses at once is not to be asked without a pause
		case <-time.After(pauseOfTries):
		case <-ctx.Done():
		}
	}
}

// pauseOfTries is the pause between two such calls.
const pauseOfTries = 20 * time.Millisecond

// claim waits for a future.
func (env *Env) claim(pending <-chan asynclock.Result) *asynclock.Lease {
	env.Helper()
	return env.claimEither(&pending, new(<-chan asynclock.Result))
}

// claimEither waits for the first of two futures, and makes its channel nil.
func (env *Env) claimEither(one, other *<-chan asynclock.Result) *asynclock.Lease {
	env.Helper()
	var got asynclock.Result
	select {
	case got = <-*one:
		*one = nil
	case got = <-*other:
		*other = nil
	case <-env.ctx.Done():
		env.Fatal("the future was never fulfilled")
	}
	lease, err := got.Lease()
	if err != nil {
		env.Fatal(err)
	}
	return lease
}

// unlock gives a key back that is still held.
func (env *Env) unlock(l *asynclock.Lease) {
	env.Helper()
	if err := l.Unlock(env.ctx); err != nil {
		env.Errorf("unlock: got %v, want no error", err)
	}
}

// awaitWaiters waits until n clients are queued.
func (env *Env) awaitWaiters(c *asynclock.Client, key string, n int) {
	env.Helper()
	kit.Eventually(env.T, "waiters to queue", func() bool {
		info, err := c.Inspect(env.ctx, key)
		return err == nil && info.Waiters == n
	})
}

// awaitEnd waits until a lease has ended.
func (env *Env) awaitEnd(l *asynclock.Lease) {
	env.Helper()
	select {
	case <-l.Done():
	case <-env.ctx.Done():
		env.Fatal("the lease never ended")
	}
}

// remains reports whether a reported remainder of the TTL long can be true, soon after the
// TTL was set.
func (env *Env) remains(got time.Duration) bool {
	if env.Sessions {
		return got < 0 // unknown
	}
	return got > long/2 && got <= long
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
