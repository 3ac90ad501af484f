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

// A ledger knows who holds one key, from the callers themselves.
type ledger struct {
	mu      sync.Mutex
	readers map[*asynclock.Lease]bool
	writer  *asynclock.Lease
	last    int64 // the token of the last writer
	wrong   []string
}

// begins records a lease that its caller trusts.
func (g *ledger) begins(l *asynclock.Lease) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.writer != nil && g.writer.Valid(0) || l.Mode() == asynclock.Exclusive && g.lasting() > 0 {
		g.wrong = append(g.wrong, fmt.Sprintf("lease %d of mode %v beside writer %v and %d readers", l.Token(), l.Mode(), g.writer != nil, g.lasting()))
	}
	if l.Token() <= g.last {
		g.wrong = append(g.wrong, fmt.Sprintf("token %d after the writer's token %d", l.Token(), g.last))
	}
	for r := range g.readers {
		if r.Valid(0) && r.Token() != l.Token() {
			g.wrong = append(g.wrong, fmt.Sprintf("readers with tokens %d and %d at the same time", r.Token(), l.Token()))
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
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			story(t, func(w *world) { readAndWrite(w, &dice{random: rand.New(rand.NewPCG(seed, 1))}) })
		})
	}
}

// Dice are a source of random numbers for several goroutines.
type dice struct {
	mu     sync.Mutex
	random *rand.Rand
}

func (d *dice) below(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.random.IntN(n)
}

func (d *dice) upTo(most time.Duration) time.Duration { return time.Duration(d.below(int(most))) }

func readAndWrite(w *world, random *dice) {
	if random.below(2) == 0 {
		w.store.EveryEvent(func(asynclocktest.Event) bool { return random.below(4) == 0 }, asynclocktest.Drop)
	}
	if random.below(2) == 0 {
		w.store.Every(func(asynclocktest.Call) bool { return random.below(8) == 0 }, asynclocktest.LoseReply)
	}
	g := &ledger{readers: make(map[*asynclock.Lease]bool)}
	var all sync.WaitGroup
	for range 3 {
		c := w.client()
		for range 4 {
			all.Go(func() {
				for range 12 {
					time.Sleep(random.upTo(300 * time.Millisecond))
					g.visit(w, c, random)
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
	for _, wrong := range g.wrong {
		w.Error(wrong)
	}
	w.pass(time.Hour)
	w.wantUnused()
}

// cutAtRandom cuts clients off from the store for a while.
func cutAtRandom(ctx context.Context, w *world, random *dice) {
	for ctx.Err() == nil {
		time.Sleep(random.upTo(20 * time.Second))
		mend := w.store.Cut(random.below(3))
		time.Sleep(random.upTo(30 * time.Second))
		mend()
	}
}

// visit takes the key in one of the ways, uses it for a while, and unlocks it.
func (g *ledger) visit(w *world, c *asynclock.Client, random *dice) {
	ctx, cancel := context.WithTimeout(w.Context(), time.Hour)
	defer cancel()
	ttl := asynclock.WithTTL(time.Duration(1+random.below(2)) * 10 * time.Second)
	var l *asynclock.Lease
	var err error
	switch random.below(8) {
	case 0, 1:
		l, err = c.Lock(ctx, "key", ttl)
	case 2:
		l, err = c.TryRLock(ctx, "key", ttl)
	case 3:
		l, err = (<-c.RLockChan(ctx, "key", ttl)).Lease()
	case 4: // gives up
		short, cancelShort := context.WithTimeout(ctx, random.upTo(200*time.Millisecond))
		defer cancelShort()
		results := c.RLockChan(short, "key", ttl)
		time.Sleep(random.upTo(300 * time.Millisecond))
		l, err = (<-results).Lease()
	default:
		l, err = c.RLock(ctx, "key", ttl)
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
	g.begins(l)
	most := 400 * time.Millisecond
	if random.below(10) == 0 {
		most = 20 * time.Second
	}
	time.Sleep(random.upTo(most))
	g.ends(l)
	if err := l.Unlock(ctx); err != nil && !errors.Is(err, store.ErrOutcomeUnknown) && !errors.Is(err, asynclock.ErrLost) {
		w.Errorf("Unlock: got %v", err)
	}
}
