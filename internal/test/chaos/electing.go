// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/elect"
	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// elections is how many there are: of e1 and so on. In each worker one goroutine campaigns in each,
// one observes it, and one looks.
const elections = 2

// elect takes part in all elections until ctx ends.
func (w *worker) elect(ctx context.Context) {
	for i := range elections {
		key := fmt.Sprint("e", i+1)
		source := rand.New(rand.NewPCG(w.Seed, 1<<32+uint64(i)))
		w.others.Go(func() { w.campaign(ctx, key, &caller{worker: w, rand: source}) }) // ends with ctx
		w.others.Go(func() { w.observe(ctx, key) })                                    // ends with ctx
		w.others.Go(func() { w.look(ctx, key) })                                       // ends with ctx
	}
}

// campaign leads under one term after the other. A term is in the history as a lease that was requested when
// the one before it had ended.
func (w *worker) campaign(ctx context.Context, key string, c *caller) {
	asked := history.Now()
	for ctx.Err() == nil {
		ttl := w.TTLs[c.rand.IntN(len(w.TTLs))]
		value := elect.WithValue([]byte(w.Name))
		_ = elect.Run(ctx, w.locks, key, func(_ context.Context, term *elect.Term) error {
			t := task{op: w.newOp(), key: key, how: "elect.Run", ttl: ttl, hold: c.upTo(ttl), writes: c.rand.IntN(3)}
			c.asked.Add(1)
			h := c.granted(t, asked, term.Lease)
			h.lead(ctx, term)
			asked = history.Now()
			if c.chance(4) {
				return elect.ErrResign // and campaign with another TTL
			}
			return nil
		}, value, elect.WithLockOptions(asynclock.WithTTL(ttl)))
	}
}

// lead works under a term. Its value names it.
func (h *holding) lead(ctx context.Context, term *elect.Term) {
	if h.chance(2) {
		_ = term.Proclaim(ctx, []byte(h.task.op)) // fails with the term
	}
	h.work()
	h.ask()
	now := history.Now()
	h.history.Add(history.Record{Kind: history.Ended, Op: h.task.op, Valid: h.valid, Begin: now, End: now, Refused: h.refused})
}

// observe tells of what one observer after the other is sent.
func (w *worker) observe(ctx context.Context, key string) {
	for n := 1; ctx.Err() == nil; n++ {
		leaders, err := elect.Observe(ctx, w.locks, key, elect.WithInterval(elect.MinInterval))
		if err != nil {
			nap(ctx, 100*time.Millisecond)
			continue
		}
		for leader := range leaders {
			now := history.Now()
			w.saw(leader, history.Record{Whom: fmt.Sprintf("%s/observer%d", w.Name, n), How: "Observe", Begin: now, End: now})
		}
	}
}

// look asks again and again who leads.
func (w *worker) look(ctx context.Context, key string) {
	for nap(ctx, 30*time.Millisecond); ctx.Err() == nil; nap(ctx, 30*time.Millisecond) {
		limited, cancel := context.WithTimeout(ctx, time.Second)
		asked := history.Now()
		leader, err := elect.Current(limited, w.locks, key)
		cancel()
		if err == nil {
			w.saw(leader, history.Record{Whom: w.Name, How: "Current", Begin: asked, End: history.Now()})
		}
	}
}

func (w *worker) saw(leader elect.Leader, r history.Record) {
	r.Kind, r.Key, r.Token, r.Value = history.Seen, leader.Key, leader.Token, string(leader.Value)
	w.history.Add(r)
}

// nap waits for d, or for the end of ctx.
func nap(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
