// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// A ledger knows who holds one key, from the callers themselves.
type ledger struct {
	*visitors

	mu      sync.Mutex
	readers map[*asynclock.Lease]bool
	writer  *asynclock.Lease
	last    int64 // the token of the last writer
}

// begins records a lease that its caller trusts.
func (g *ledger) begins(l *asynclock.Lease) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.writer != nil && g.writer.Valid(0) || l.Mode() == asynclock.Exclusive && g.lasting() > 0 {
		g.Errorf("lease %d of mode %v beside writer %v and %d readers", l.Token(), l.Mode(), g.writer != nil, g.lasting())
	}
	if l.Token() <= g.last {
		g.Errorf("token %d after the writer's token %d", l.Token(), g.last)
	}
	for r := range g.readers {
		if r.Valid(0) && r.Token() != l.Token() {
			g.Errorf("readers with tokens %d and %d at the same time", r.Token(), l.Token())
		}
	}
	if l.Mode() == asynclock.Exclusive {
		g.writer, g.last = l, l.Token()
		return
	}
	g.readers[l] = true
}

// lasting counts the readers whose leases last.
func (g *ledger) lasting() (n int) {
	for r := range g.readers {
		if r.Valid(0) {
			n++
		}
	}
	return n
}

// ends records that the caller is about to unlock.
func (g *ledger) ends(l *asynclock.Lease) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.readers, l)
	if g.writer == l {
		g.writer = nil
	}
}

// Readers and writers of several clients come at random over a network that loses messages and answers.
// No writer meets anybody, tokens rise from writer to writer, readers between two writers have one token,
// and everybody is served.
func TestReadersAndWritersAtRandom(t *testing.T) {
	atRandom(t, 40, 1, visitors{callers: 4, pause: 300 * time.Millisecond}, func(all *visitors) func(*asynclock.Client) {
		return (&ledger{visitors: all, readers: make(map[*asynclock.Lease]bool)}).visit
	})
}

// visit takes the key in one of the ways, uses it for a while, and unlocks it.
func (g *ledger) visit(c *asynclock.Client) {
	ctx, cancel := context.WithTimeout(g.Context(), time.Hour)
	defer cancel()
	ttl := g.ttl()
	var l *asynclock.Lease
	var err error
	switch g.below(8) {
	case 0, 1:
		l, err = c.Lock(ctx, "key", ttl)
	case 2:
		l, err = c.TryRLock(ctx, "key", ttl)
	case 3:
		l, err = (<-c.RLockChan(ctx, "key", ttl)).Lease()
	case 4:
		l, err = g.late(ctx, func(ctx context.Context) <-chan asynclock.Result { return c.RLockChan(ctx, "key", ttl) })
	default:
		l, err = c.RLock(ctx, "key", ttl)
	}
	if g.served(err) {
		g.begins(l)
		time.Sleep(g.work())
		g.ends(l)
		g.unlocks(l)
	}
}
