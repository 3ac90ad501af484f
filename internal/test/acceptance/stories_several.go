// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/asynclock/asynclock-go/asynclock"
)

// lockAll takes keys that are free or will be.
func (env *Env) lockAll(c *asynclock.Client, keys []string) *asynclock.MultiLease {
	env.Helper()
	for {
		lease, err := c.LockAll(env.ctx, keys)
		if errors.Is(err, asynclock.ErrUnreachable) && env.ctx.Err() == nil {
			continue // it has waited for the store already
		}
		if err != nil {
			env.Fatal(err)
		}
		return lease
	}
}

func (env *Env) unlockAll(m *asynclock.MultiLease) {
	env.Helper()
	if err := m.Unlock(env.ctx); err != nil {
		env.Error(err)
	}
}

// severalKeysNeverDeadlock: two clients take the same keys in opposite order, and a third takes them
// one by one.
func severalKeysNeverDeadlock(env *Env) {
	const rounds = 5
	keys := []string{"one", "two", "three", "four"}
	var taken atomic.Int64 // how often all of them were taken together
	var counters [4]unprotected
	var bumps [4]atomic.Int64
	bump := func(i int) {
		counters[i].bump()
		bumps[i].Add(1)
	}
	var working sync.WaitGroup
	work := func(c *asynclock.Client, keys []string) {
		for range rounds {
			m, err := c.LockAll(env.ctx, keys)
			if errors.Is(err, asynclock.ErrUnreachable) {
				continue // as on a busy machine
			}
			if err != nil {
				env.Error(err)
				return
			}
			taken.Add(1)
			for i := range counters {
				bump(i)
			}
			if err := m.Err(); err == nil && len(m.Tokens()) != len(keys) {
				env.Errorf("tokens: got %v, want one of each key", m.Tokens())
			}
			if err := m.Unlock(env.ctx); err != nil {
				env.Error(err)
			}
		}
	}
	clients := env.clients(3)
	reversed := slices.Clone(keys)
	slices.Reverse(reversed)
	for i, order := range [][]string{keys, reversed} {
		working.Go(func() { work(clients[i], order) })
	}
	working.Go(func() {
		for range rounds {
			for i, key := range keys {
				lease, err := clients[2].Lock(env.ctx, key)
				if errors.Is(err, asynclock.ErrUnreachable) {
					continue
				}
				if err != nil {
					env.Error(err)
					return
				}
				bump(i)
				if err := lease.Unlock(env.ctx); err != nil {
					env.Error(err)
				}
			}
		}
	})
	working.Wait()
	if taken.Load() == 0 {
		env.mistimed("LockAll: got the keys never, want it in some of %d rounds", 2*rounds)
	}
	for i, key := range keys {
		if got, want := counters[i].n.Load(), bumps[i].Load(); got != want {
			env.Errorf("the counter of %q: got %d, want %d", key, got, want)
		}
	}
	env.unlockAll(env.lockAll(clients[0], keys)) // nothing is left
}
