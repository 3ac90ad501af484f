// SPDX-License-Identifier: Apache-2.0

package quorumstore_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
)

// A referee sees all leases of a key, and has the clock of all clients.
type referee struct {
	*testing.T

	mu     sync.Mutex
	inside map[*asynclock.Lease]bool
	last   int64
	locks  int
	ended  time.Time     // when a lease was last there
	gap    time.Duration // the longest time without one
}

func (r *referee) enters(l *asynclock.Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !l.Valid(0) {
		return
	}
	for other := range r.inside {
		if other.Valid(0) {
			r.Errorf("two leases at a time, with tokens %d and %d", other.Token(), l.Token())
		}
	}
	if l.Token() <= r.last {
		r.Errorf("token %d after %d, want it larger", l.Token(), r.last)
	}
	if len(r.inside) == 0 && !r.ended.IsZero() {
		r.gap = max(r.gap, time.Since(r.ended))
	}
	r.last = l.Token()
	r.locks++
	r.inside[l] = true
}

func (r *referee) leaves(l *asynclock.Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.inside, l)
	r.ended = time.Now()
}

func (r *referee) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.locks
}

// longest returns the longest gap since it was last asked.
func (r *referee) longest() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	gap := r.gap
	r.gap = 0
	return gap
}

// quarrel lets clients lock a key until ctx ends.
func (r *referee) quarrel(ctx context.Context, st store.Store, clients int) (wait func()) {
	var crowd sync.WaitGroup
	for range clients {
		crowd.Go(func() {
			c, err := asynclock.New(st)
			if err != nil {
				r.Error(err)
				return
			}
			for ctx.Err() == nil {
				l, err := c.Lock(ctx, "key", asynclock.WithTTL(time.Second))
				if err != nil {
					time.Sleep(10 * time.Millisecond)
					continue
				}
				r.enters(l)
				hold := rand.N(20 * time.Millisecond)
				if rand.N(40) == 0 {
					hold = 1500 * time.Millisecond
				}
				select {
				case <-time.After(hold):
				case <-l.Done():
				}
				if l.Err() != nil {
					r.Logf("LOST at %v: %v", time.Now().Format("05.000"), l.Err())
				}
				r.leaves(l)
				_ = l.Unlock(context.WithoutCancel(ctx)) // it may be lost
			}
			_ = c.Close(context.Background())
		})
	}
	return crowd.Wait
}

// TestFaultsOfNodes: whatever happens to a minority of nodes, there are never two leases at a time, tokens rise, and
// everybody is served.
func TestFaultsOfNodes(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 5} {
		for range 4 {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { manyFaults(t, n) })
			})
		}
	}
}

func manyFaults(t *testing.T, n int) {
	t.Helper()
	nodes, stores := make([]*frail, n), make([]store.Store, n)
	for i := range nodes {
		nodes[i] = newFrail()
		stores[i] = nodes[i]
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &referee{T: t, inside: make(map[*asynclock.Lease]bool)}
	wait := r.quarrel(ctx, over(t, stores...), 5)
	time.Sleep(time.Second)
	for range 8 {
		before := r.count()
		node := nodes[rand.N(n)]
		fault := []frailty{killed, hung, lossy, far}[rand.N(4)]
		restarts := rand.N(2) == 0
		t.Logf("%v fault %v restarts %v", time.Now().Format("05.000"), fault, restarts)
		node.set(fault)
		time.Sleep(rand.N(3 * time.Second))
		if restarts {
			node.restart()
		} else {
			node.set(sound)
		}
		time.Sleep(gracePeriod + time.Second)
		t.Logf("%d nodes, fault %d, restarts %v: %d locks, longest gap %v", n, fault, restarts, r.count()-before, r.longest())
	}
	cancel()
	wait()
}
