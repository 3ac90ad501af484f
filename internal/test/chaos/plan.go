// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// attack strikes with the faults of one lane, one after the other, until ctx ends or there
// have been as many as there are to be. The seed decides which fault comes when, whom it hits
// and for how long: each fault once in random order, and again. It does not decide what the
// workers are doing at that moment, so a seed repeats a run as closely as a real machine can.
func (r *run) attack(ctx context.Context, where lane, deck []fault) error {
	var mine []fault
	for _, f := range deck {
		if f.lane == where {
			mine = append(mine, f)
		}
	}
	if len(mine) == 0 {
		return nil
	}
	random := rand.New(rand.NewPCG(r.seed, uint64(where)))
	for struck := 0; ; {
		random.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
		for _, f := range mine {
			b := &blow{run: r, ctx: ctx, rand: random, record: &history.Record{
				Kind: history.Fault, Fault: f.name, Lossy: f.lossy, Forgets: f.forgets, Moves: f.moves,
			}}
			b.wait(time.Duration(random.ExpFloat64() * float64(r.rest)))
			if ended(ctx) {
				return nil
			}
			b.record.Begin = history.Now()
			if err := f.strike(b); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
			if b.record.End == 0 {
				b.record.End = history.Now()
			}
			r.file.Add(*b.record)
			if struck++; struck == r.blows {
				return nil
			}
		}
	}
}

func ended(ctx context.Context) bool { return ctx.Err() != nil }
