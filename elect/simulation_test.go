// SPDX-License-Identifier: Apache-2.0

package elect_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/elect"
	"github.com/asynclock/asynclock-go/internal/backoff"
)

// A chronicle knows who has led, from the leaders, and what was seen of it.
type chronicle struct {
	mu     sync.Mutex
	leader *elect.Term
	newest int64 // the largest number of a term that has begun or was seen
	terms  int
	seen   int
	wrong  []string
}

func (c *chronicle) blame(format string, args ...any) {
	c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
}

// begins records a term that its leader trusts.
func (c *chronicle) begins(t *elect.Term) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !t.Valid(0) {
		return
	}
	if c.leader != nil && c.leader.Valid(0) {
		c.blame("term %d begins while term %d is trusted", t.Token(), c.leader.Token())
	}
	if c.leader != nil && t.Token() <= c.leader.Token() {
		c.blame("term %d begins after term %d", t.Token(), c.leader.Token())
	}
	c.leader, c.newest = t, max(c.newest, t.Token())
	c.terms++
}

// known returns the largest number of a term that a look must not fall short of.
func (c *chronicle) known() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newest
}

// looked records what a look has found that began when floor was known.
func (c *chronicle) looked(l *elect.Leader, floor int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.Token != 0 && l.Token < floor {
		c.blame("a look shows term %d, when term %d was known", l.Token, floor)
	}
	if len(l.Value) > 0 && string(l.Value) != fmt.Sprint(l.Token) {
		c.blame("a look shows term %d with the value of %s", l.Token, l.Value)
	}
	c.newest = max(c.newest, l.Token)
	c.seen++
}

// Candidates and observers of several clients are cut off and paused at random, and messages and answers are
// lost. Terms have rising numbers and never overlap. No look shows less than was known before, and no observer
// goes back.
func TestElectionsAtRandom(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			story(t, func(w *world) { electAtRandom(w, rand.New(rand.NewPCG(seed, 3))) })
		})
	}
}

func electAtRandom(w *world, random *rand.Rand) {
	const clients, lasting = 3, 10 * time.Minute
	w.store.EveryEvent(func(asynclocktest.Event) bool { return rand.N(4) == 0 }, asynclocktest.Drop)
	w.store.Every(func(asynclocktest.Call) bool { return rand.N(8) == 0 }, asynclocktest.LoseReply)
	var c chronicle
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(w.Context())
	for n := range clients {
		locks := w.client(asynclock.WithTTL(5 * time.Second))
		all.Go(func() { c.campaign(ctx, locks, time.Duration(1+n)*3*time.Second) })
		all.Go(func() { c.campaign(ctx, locks, time.Second) }) // in one client, one may follow the other without the store
		all.Go(func() { c.look(ctx, locks) })
		all.Go(func() { c.observe(ctx, locks) })
	}
	for end := time.Now().Add(lasting); time.Now().Before(end); {
		w.pass(time.Duration(random.Int64N(int64(20 * time.Second))))
		mend := w.store.Cut
		if random.IntN(2) == 0 {
			mend = w.store.Pause
		}
		heal := mend(random.IntN(clients))
		w.pass(time.Duration(random.Int64N(int64(15 * time.Second))))
		heal()
	}
	w.pass(time.Minute)
	cancel()
	all.Wait()
	for _, wrong := range c.wrong {
		w.Error(wrong)
	}
	if c.terms < 20 || c.seen < 100 {
		w.Errorf("got %d terms and %d looks, want many", c.terms, c.seen)
	}
}

// campaign leads under one term after the other, each for a while.
func (c *chronicle) campaign(ctx context.Context, locks *asynclock.Client, longest time.Duration) {
	_ = elect.Run(ctx, locks, key, func(ctx context.Context, term *elect.Term) error {
		c.begins(term)
		if rand.N(2) == 0 {
			_ = term.Proclaim(ctx, fmt.Append(nil, term.Token())) // fails with the term
		}
		backoff.Sleep(ctx, rand.N(longest))
		return nil
	})
}

// look asks again and again who leads.
func (c *chronicle) look(ctx context.Context, locks *asynclock.Client) {
	for ; ctx.Err() == nil; backoff.Sleep(ctx, rand.N(2*time.Second)) {
		floor := c.known()
		if l, err := elect.Current(ctx, locks, key); err == nil {
			c.looked(&l, floor)
		}
	}
}

// observe receives what one observer is sent.
func (c *chronicle) observe(ctx context.Context, locks *asynclock.Client) {
	leaders, err := elect.Observe(ctx, locks, key, elect.WithInterval(interval))
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.blame("Observe: %v", err)
		return
	}
	var last int64
	for l := range leaders {
		c.looked(&l, last)
		last = max(last, l.Token)
	}
}
