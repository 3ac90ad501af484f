// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/faultconn"
)

// hasPermits reports whether the store has permits. If it has none, it has to say so.
func (env *Env) hasPermits(c *asynclock.Client) bool {
	env.Helper()
	if env.Connect(new(faultconn.Line)).Features().Permits {
		return true
	}
	if _, err := c.Semaphore("key", 1); !errors.Is(err, asynclock.ErrUnsupported) {
		env.Errorf("a semaphore in a store without permits: got %v, want ErrUnsupported", err)
	}
	return false
}

// semaphore returns the semaphore that a story is about.
func (env *Env) semaphore(c *asynclock.Client, permits int) *asynclock.Semaphore {
	env.Helper()
	s, err := c.Semaphore("key", permits)
	if err != nil {
		env.Fatal(err)
	}
	return s
}

// permitsAreCounted: callers of several clients use permits, and no more are out than there are.
func permitsAreCounted(env *Env) {
	const limit, rounds = 3, 10
	clients := env.clients(3)
	if !env.hasPermits(clients[0]) {
		return
	}
	var out, most atomic.Int64
	use := func(s *asynclock.Semaphore, n int) {
		l, err := s.Acquire(env.ctx, n)
		if errors.Is(err, asynclock.ErrUnreachable) {
			return // as on a busy machine
		}
		if err != nil {
			env.Error(err)
			return
		}
		now := out.Add(int64(l.Weight()))
		for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
		}
		if now > limit && l.Valid(0) {
			env.Errorf("permits that are out: got %d, want %d at most", now, limit)
		}
		time.Sleep(2 * time.Millisecond)
		out.Add(-int64(l.Weight()))
		if err := l.Unlock(env.ctx); err != nil && !errors.Is(err, asynclock.ErrLost) {
			env.Error(err)
		}
	}
	var working sync.WaitGroup
	for i, c := range clients {
		s := env.semaphore(c, limit)
		for caller := range 4 {
			working.Go(func() {
				for round := range rounds {
					use(s, 1+(i+caller+round)%limit)
				}
			})
		}
	}
	working.Wait()
	if most.Load() < 2 {
		env.mistimed("permits that are out: got %d at most, want 2", most.Load())
	}
	env.unlock(env.lock(clients[0], "key")) // nothing is left
}

// largeRequestIsServed: a request for all permits is served in its turn, although others for one permit
// come all the time.
func largeRequestIsServed(env *Env) {
	clients := env.clients(3)
	if !env.hasPermits(clients[0]) {
		return
	}
	small, large, late := env.semaphore(clients[0], 3), env.semaphore(clients[1], 3), env.semaphore(clients[2], 3)
	first, err := small.Acquire(env.ctx, 1)
	if err != nil {
		env.Fatal(err)
	}
	waiting := large.AcquireChan(env.ctx, 3)
	env.awaitWaiters(clients[0], "key", 1)
	if _, err := small.TryAcquire(env.ctx, 1); !errors.Is(err, asynclock.ErrHeld) {
		env.Errorf("a request that would pass a larger one: got %v, want ErrHeld", err)
	}
	behind := late.AcquireChan(env.ctx, 1)
	env.awaitWaiters(clients[0], "key", 2)
	env.unlock(first)
	all := env.claim(waiting)
	if len(behind) > 0 {
		env.Error("a request behind the large one was answered with it")
	}
	env.unlock(all)
	env.unlock(env.claim(behind))
}

// killedHoldersPermitsComeBack: the permits of a process that was killed are free after its TTL, and those
// of others stay theirs.
func killedHoldersPermitsComeBack(env *Env) {
	c := env.client()
	if !env.hasPermits(c) {
		return
	}
	s := env.semaphore(c, 3)
	ours, err := s.Acquire(env.ctx, 1)
	if err != nil {
		env.Fatal(err)
	}
	dead := env.worker()
	dead.does(order{Do: "acquire", Key: "key", Permits: 2, Of: 3, TTL: short})
	pending := s.AcquireChan(env.ctx, 2)
	env.awaitWaiters(c, "key", 1)
	dead.kill()
	start := time.Now()
	next := env.claim(pending)
	env.wantWithin(short+heartbeat, start, "the permits of a killed process")
	if !ours.Valid(0) {
		env.mistimed("the lease beside them: got %v, want it to last", ours.Err())
	}
	env.unlock(next)
	env.unlock(ours)
}
