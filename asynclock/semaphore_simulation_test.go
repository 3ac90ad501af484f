// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

// A pool knows who has how many permits, from the callers themselves.
type pool struct {
	mu     sync.Mutex
	leases map[*asynclock.Lease]bool
	wrong  []string
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
		p.wrong = append(p.wrong, fmt.Sprintf("%d permits of %d are out, and %d leases of all", out, limit, writers))
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
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			story(t, func(w *world) { takeAtRandom(w, &dice{random: rand.New(rand.NewPCG(seed, 2))}) })
		})
	}
}

func takeAtRandom(w *world, random *dice) {
	if random.below(2) == 0 {
		w.store.EveryEvent(func(asynclocktest.Event) bool { return random.below(4) == 0 }, asynclocktest.Drop)
	}
	if random.below(2) == 0 {
		w.store.Every(func(asynclocktest.Call) bool { return random.below(8) == 0 }, asynclocktest.LoseReply)
	}
	p := &pool{leases: make(map[*asynclock.Lease]bool)}
	var all sync.WaitGroup
	for range 3 {
		c := w.client()
		for range 5 {
			all.Go(func() {
				for range 12 {
					time.Sleep(random.upTo(200 * time.Millisecond))
					p.visit(w, c, random)
				}
			})
		}
	}
	cuts, stop := context.WithCancel(w.Context())
	var cutting sync.WaitGroup
	if random.below(2) == 0 {
		cutting.Go(func() { cutAtRandom(cuts, w, random) })
	}
	all.Wait()
	stop()
	cutting.Wait()
	for _, wrong := range p.wrong {
		w.Error(wrong)
	}
	w.pass(time.Hour)
	w.wantUnused()
}

// visit takes permits in one of the ways, uses them for a while, and gives them back.
func (p *pool) visit(w *world, c *asynclock.Client, random *dice) {
	const limit = 4
	ctx, cancel := context.WithTimeout(w.Context(), time.Hour)
	defer cancel()
	options := []asynclock.LockOption{asynclock.WithTTL(time.Duration(1+random.below(2)) * 10 * time.Second)}
	switch random.below(12) {
	case 0:
		options = append(options, asynclock.WithMinHold(random.upTo(time.Second)+time.Millisecond))
	case 1:
		options = append(options, asynclock.WithMaxHold(random.upTo(time.Second)+time.Second))
	case 2:
		options = append(options, asynclock.WithRenewal(false))
	}
	s := semaphore(w, c, limit)
	n := 1 + random.below(3)*random.below(2)
	var l *asynclock.Lease
	var err error
	switch random.below(10) {
	case 0:
		l, err = c.Lock(ctx, "key")
	case 1:
		l, err = s.TryAcquire(ctx, n, options...)
	case 2, 3:
		l, err = (<-s.AcquireChan(ctx, n, options...)).Lease()
	case 4: // gives up
		short, cancelShort := context.WithTimeout(ctx, random.upTo(200*time.Millisecond))
		defer cancelShort()
		results := s.AcquireChan(short, n, options...)
		time.Sleep(random.upTo(300 * time.Millisecond))
		l, err = (<-results).Lease()
	default:
		l, err = s.Acquire(ctx, n, options...)
	}
	switch {
	case err == nil:
	case errors.Is(err, asynclock.ErrHeld), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, asynclock.ErrUnreachable):
		return
	default:
		w.Errorf("got error %v", err)
		return
	}
	p.begins(l, limit)
	most := 400 * time.Millisecond
	if random.below(10) == 0 {
		most = 20 * time.Second
	}
	time.Sleep(random.upTo(most))
	p.ends(l)
	if err := l.Unlock(ctx); err != nil && !errors.Is(err, store.ErrOutcomeUnknown) && !errors.Is(err, asynclock.ErrLost) {
		w.Errorf("Unlock: got %v", err)
	}
}
