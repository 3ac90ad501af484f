// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// A crew is clients at work: they bump counters that nobody protects, under
// locks, while the test does something to the server.
type crew struct {
	env      *Env
	jobs     [2]job
	tolerate func(error) bool // a failed lock that is no failure of the test
	held     []atomic.Int64   // how often each client had a lock
	stopping atomic.Bool
	working  sync.WaitGroup
}

// A job is what is done under one key.
type job struct {
	counter unprotected
	tokens  sync.Map // those under which it was done
}

func jobKey(number int) string { return "job-" + strconv.Itoa(number) }

// newCrew sets three clients to work, two goroutines each, on two keys.
func (env *Env) newCrew(tolerate func(error) bool, options ...asynclock.ClientOption) *crew {
	env.Helper()
	clients := env.clients(3, options...)
	c := &crew{env: env, tolerate: tolerate, held: make([]atomic.Int64, len(clients))}
	for i, locks := range clients {
		for range 2 {
			c.working.Go(func() {
				for n := 0; !c.stopping.Load() && env.ctx.Err() == nil; n++ {
					c.work(i, locks, n%len(c.jobs))
					time.Sleep(time.Millisecond) // to leave the machine to other tests
				}
			})
		}
	}
	return c
}

func (c *crew) work(client int, locks *asynclock.Client, number int) {
	err := locks.WithLock(c.env.ctx, jobKey(number), func(_ context.Context, lease *asynclock.Lease) error {
		j := &c.jobs[number]
		j.counter.bump()
		if _, again := j.tokens.LoadOrStore(lease.Token(), true); again {
			c.env.Errorf("token %d was given out twice", lease.Token())
		}
		return nil
	})
	switch {
	case err == nil:
		c.held[client].Add(1)
	case !c.tolerate(err):
		c.env.Error(err)
		c.stopping.Store(true)
	}
}

// no failure is tolerated.
func no(error) bool { return false }

// advance waits until each client has had n more locks.
func (c *crew) advance(n int64) {
	c.env.Helper()
	want := make([]int64, len(c.held))
	for i := range want {
		want[i] = c.held[i].Load() + n
	}
	kit.Eventually(c.env.T, "the work to go on", func() bool {
		for i := range want {
			if c.held[i].Load() < want[i] && !c.stopping.Load() {
				return false
			}
		}
		return true
	})
}

// stop ends the work and returns how many updates were made, and how many of
// them the counters have.
func (c *crew) stop() (made, kept int64) {
	c.stopping.Store(true)
	c.working.Wait()
	for i := range c.held {
		made += c.held[i].Load()
	}
	for i := range c.jobs {
		kept += c.jobs[i].counter.n.Load()
	}
	return made, kept
}

// wantNothingLost ends the work and checks its result.
func (c *crew) wantNothingLost() {
	c.env.Helper()
	if made, kept := c.stop(); kept != made {
		c.env.Errorf("updates: got %d, want %d", kept, made)
	}
}
