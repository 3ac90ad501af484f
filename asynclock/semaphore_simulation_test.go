// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// A pool knows who has how many permits, from the callers themselves.
type pool struct {
	*visitors

	mu     sync.Mutex
	leases map[*asynclock.Lease]bool
}

// begins records a lease that its caller trusts.
func (p *pool) begins(l *asynclock.Lease, limit int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	out, writers := l.Weight(), 0
	if l.Mode() == asynclock.Exclusive {
		writers = 1
	}
	for other := range p.leases {
		if !other.Valid(0) {
			continue
		}
		out += other.Weight()
		if other.Mode() == asynclock.Exclusive {
			writers++
		}
	}
	if out > limit || writers > 1 || writers == 1 && out > 0 {
		p.Errorf("%d permits of %d are out, and %d leases of all", out, limit, writers)
	}
	p.leases[l] = true
}

// ends records that the caller is about to unlock.
func (p *pool) ends(l *asynclock.Lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.leases, l)
}

// Callers of several clients take permits at random over a network that loses messages and answers. Never
// are more out than there are, and everybody is served.
func TestPermitsAtRandom(t *testing.T) {
	atRandom(t, 60, 2, visitors{callers: 5, pause: 200 * time.Millisecond}, func(all *visitors) func(*asynclock.Client) {
		return (&pool{visitors: all, leases: make(map[*asynclock.Lease]bool)}).visit
	})
}

// visit takes permits in one of the ways, uses them for a while, and gives them back.
func (p *pool) visit(c *asynclock.Client) {
	const limit = 4
	ctx, cancel := context.WithTimeout(p.Context(), time.Hour)
	defer cancel()
	options := []asynclock.LockOption{p.ttl()}
	switch p.below(12) {
	case 0:
		options = append(options, asynclock.WithMinHold(p.upTo(time.Second)+time.Millisecond))
	case 1:
		options = append(options, asynclock.WithMaxHold(p.upTo(time.Second)+time.Second))
	case 2:
		options = append(options, asynclock.WithRenewal(false))
	}
	s := semaphore(p, c, limit)
	n := 1 + p.below(3)*p.below(2)
	var l *asynclock.Lease
	var err error
	switch p.below(10) {
	case 0:
		l, err = c.Lock(ctx, "key")
	case 1:
		l, err = s.TryAcquire(ctx, n, options...)
	case 2, 3:
		l, err = (<-s.AcquireChan(ctx, n, options...)).Lease()
	case 4:
		l, err = p.late(ctx, func(ctx context.Context) <-chan asynclock.Result { return s.AcquireChan(ctx, n, options...) })
	default:
		l, err = s.Acquire(ctx, n, options...)
	}
	if p.served(err) {
		p.begins(l, limit)
		time.Sleep(p.work())
		p.ends(l)
		p.unlocks(l)
	}
}
