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

// work is how long a holder is at work, which is long now and then.
func (d *dice) work() time.Duration {
	if d.below(10) == 0 {
		return d.upTo(20 * time.Second)
	}
	return d.upTo(400 * time.Millisecond)
}

func (d *dice) ttl() asynclock.LockOption {
	return asynclock.WithTTL(time.Duration(1+d.below(2)) * 10 * time.Second)
}

// Visitors come to the store at random, in a world of their own.
type visitors struct {
	*world
	*dice

	callers int           // of each of three clients
	pause   time.Duration // before each visit, at most
}

// atRandom tells a story for each seed. In some of them the network loses messages, or answers, or cuts clients off for
// a while. Each caller visits a dozen times, and in the end nothing is left.
func atRandom(t *testing.T, seeds, stream uint64, like visitors, begin func(all *visitors) (visit func(c *asynclock.Client))) {
	t.Helper()
	for seed := range seeds {
		scene(t, fmt.Sprint(seed), func(w *world) {
			all := like
			all.world, all.dice = w, &dice{random: rand.New(rand.NewPCG(seed, stream))}
			all.run(begin)
		})
	}
}

func (all *visitors) run(begin func(all *visitors) func(c *asynclock.Client)) {
	if all.below(2) == 0 {
		all.store.EveryEvent(func(asynclocktest.Event) bool { return all.below(4) == 0 }, asynclocktest.Drop)
	}
	if all.below(2) == 0 {
		all.store.Every(func(asynclocktest.Call) bool { return all.below(8) == 0 }, asynclocktest.LoseReply)
	}
	visit := begin(all)
	var callers, cutting sync.WaitGroup
	for range 3 {
		c := all.client()
		for range all.callers {
			callers.Go(func() {
				for range 12 {
					time.Sleep(all.upTo(all.pause))
					visit(c)
				}
			})
		}
	}
	cuts, stop := context.WithCancel(all.Context())
	if all.below(2) == 0 {
		cutting.Go(func() { all.cut(cuts) })
	}
	callers.Wait()
	stop()
	cutting.Wait()
	all.pass(time.Hour)
	all.wantUnused()
}

// cut cuts clients off from the store for a while, until ctx ends.
func (all *visitors) cut(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(all.upTo(20 * time.Second))
		mend := all.store.Cut(all.below(3))
		time.Sleep(all.upTo(30 * time.Second))
		mend()
	}
}

// late receives from a future whose context has ended, or will soon.
func (all *visitors) late(ctx context.Context, future func(ctx context.Context) <-chan asynclock.Result) (*asynclock.Lease, error) {
	short, cancel := context.WithTimeout(ctx, all.upTo(200*time.Millisecond))
	defer cancel()
	results := future(short)
	time.Sleep(all.upTo(300 * time.Millisecond))
	return (<-results).Lease()
}

// served reports whether there is no error. It fails the story for one that neither the network nor more explains.
func (all *visitors) served(err error, more ...error) bool {
	all.Helper()
	for _, expected := range append(more, nil, context.DeadlineExceeded, asynclock.ErrHeld, asynclock.ErrUnreachable) {
		if errors.Is(err, expected) {
			return err == nil
		}
	}
	all.Errorf("got error %v", err)
	return false
}

// unlocks ends a lease that may have been lost.
func (all *visitors) unlocks(l interface{ Unlock(context.Context) error }) {
	all.Helper()
	all.served(l.Unlock(all.Context()), store.ErrOutcomeUnknown, asynclock.ErrLost)
}
