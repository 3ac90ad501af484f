// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
)

// A firewall forgets the connections that exist, and tells neither end. New ones work.
type firewall struct {
	mu    sync.Mutex
	known []*passing
}

type passing struct {
	net.Conn

	forgotten atomic.Bool
}

func (f *firewall) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	p := &passing{Conn: conn}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known = append(f.known, p)
	return p, nil
}

// forget returns how many connections it has forgotten.
func (f *firewall) forget() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.known {
		p.forgotten.Store(true)
	}
	return len(f.known)
}

func (p *passing) Write(b []byte) (int, error) {
	if p.forgotten.Load() {
		return len(b), nil
	}
	return p.Conn.Write(b)
}

func (p *passing) Read(b []byte) (int, error) {
	for {
		n, err := p.Conn.Read(b)
		if err != nil || !p.forgotten.Load() {
			return n, err
		}
	}
}

// A firewall has forgotten all connections, of which many are idle. No lease is lost, and new ones are granted soon,
// because the server can be reached.
func TestSilencedConnectionsLoseNoLease(t *testing.T) {
	t.Parallel()
	ttls := []time.Duration{6 * time.Second}
	if kit.Nightly() {
		ttls = append(ttls, 15*time.Second)
	}
	for _, ttl := range ttls {
		for _, idle := range []int{10, 50} {
			for _, busy := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v, %d connections, other calls %t", ttl, idle, busy), func(t *testing.T) {
					t.Parallel()
					silence(t, ttl, idle, busy)
				})
			}
		}
	}
}

func silence(t *testing.T, ttl time.Duration, idle int, busy bool) {
	t.Helper()
	wall := new(firewall)
	sv, client := startWith(t, func(o *redis.Options) { o.PipelinePoolSize, o.Dialer = idle, wall.dial })
	st := newStore(t, client)
	locks, err := asynclock.New(st, asynclock.WithTTL(ttl), asynclock.WithoutLogger())
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(context.Background())
	end()
	t.Cleanup(func() { locks.Close(ended) })
	lease, err := locks.Lock(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	c := redistest.Join(t, st)
	if err := sv.Pause(); err != nil {
		t.Fatal(err)
	}
	var filling sync.WaitGroup
	for i := range idle {
		filling.Go(func() { c.Acquire(redistest.Attempt(fmt.Sprint("filler", i), "owner")) })
	}
	time.Sleep(500 * time.Millisecond) // they wait for the server, each on a connection of its own
	if err := sv.Resume(); err != nil {
		t.Fatal(err)
	}
	filling.Wait()
	forgotten, began := wall.forget(), time.Now()
	if busy {
		othersCall(t, locks, client)
		for {
			if one, err := locks.TryLock(t.Context(), "another"); err == nil {
				_ = one.Unlock(t.Context())
				break
			}
		}
		t.Logf("TryLock works %v after %d connections were silenced", time.Since(began), forgotten)
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("TryLock works after %v, want 4 s at most", took)
		}
	}
	select {
	case <-lease.Done():
		t.Errorf("the lease was lost %v after %d connections were silenced: %v", time.Since(began), forgotten, lease.Err())
	case <-time.After(ttl + 2*time.Second - time.Since(began)):
	}
}

// othersCall makes calls of the locks and of the application, until the test ends.
func othersCall(t *testing.T, locks *asynclock.Client, client *redis.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var calling sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		calling.Wait()
	})
	for i := range 8 {
		calling.Go(func() {
			for ctx.Err() == nil {
				_, _ = locks.TryLock(ctx, fmt.Sprint("other", i)) // free or not
				client.Ping(ctx)
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
}
