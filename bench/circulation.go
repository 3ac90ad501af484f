// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// permitHold is how long a permit is held before it is passed on.
const permitHold = time.Millisecond

// circulation passes a permit, or a key, among clients.
type circulation struct {
	clients []client
	workers []worker
	others  *asynclockClient // has all other permits, if it is about permits
	rest    *asynclock.Lease
	meter   *meter
	key     string
	passes  int
}

func newCirculation(ctx context.Context, a arena, p peer, key string, clients int, size familySizes) (runner, error) {
	c := &circulation{meter: new(meter), key: key, passes: size.passes}
	if p.name != mutexName {
		others, err := openAsynclock(a.world)
		if err != nil {
			return nil, err
		}
		s, err := others.locks.Semaphore(key, permitsOf)
		if err != nil {
			return nil, err
		}
		if c.rest, err = s.Acquire(ctx, permitsOf-1); err != nil {
			return nil, err
		}
		c.others = others
	}
	w := a.world
	w.dial = c.meter.dial
	var err error
	if c.clients, err = openClients(ctx, p, w, clients); err != nil {
		return nil, err
	}
	for _, one := range c.clients {
		work, err := one.worker(ctx)
		if err != nil {
			return nil, err
		}
		c.workers = append(c.workers, work)
	}
	return c, nil
}

func (c *circulation) round(ctx context.Context) ([]float64, error) {
	p := passes{meter: c.meter, skipped: len(c.workers), times: make([]float64, 0, c.passes)}
	errs := make([]error, len(c.workers))
	var running sync.WaitGroup
	for i, w := range c.workers {
		running.Go(func() { errs[i] = p.take(ctx, w, c.key) })
	}
	running.Wait()
	q := quantiles(p.times, 0.5, 0.99)
	return []float64{q[0], q[1], p.commands()}, errors.Join(errs...)
}

// passes are the handoffs of a round. The first ones, in which everybody comes to wait, do not count,
// and neither do the last ones, behind which fewer and fewer wait.
type passes struct {
	meter   *meter
	skipped int

	mu            sync.Mutex
	given         time.Time
	takes         int
	times         []float64 // as many as fit
	before, after int64     // commands
}

// take takes and gives back, over and over, until there are enough times.
func (p *passes) take(ctx context.Context, w worker, key string) error {
	for more := true; more; {
		h, err := w.lock(ctx, key)
		if err != nil {
			return err
		}
		if more = p.took(time.Now()); more {
			time.Sleep(permitHold)
		}
		p.mu.Lock()
		p.given = time.Now()
		p.mu.Unlock()
		if err := h.Unlock(ctx); err != nil {
			return err
		}
	}
	return nil
}

// took reports whether more times are wanted.
func (p *passes) took(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.takes++; p.takes <= p.skipped {
		p.before = p.meter.commands.Load()
		return true
	}
	if len(p.times) < cap(p.times) {
		p.times = append(p.times, micros(now.Sub(p.given)))
		p.after = p.meter.commands.Load()
	}
	return len(p.times) < cap(p.times)
}

// commands is how many there were for each handoff that counts.
func (p *passes) commands() float64 {
	return float64(p.after-p.before) / float64(len(p.times))
}

func (c *circulation) close(ctx context.Context) error {
	err := closeClients(ctx, c.clients)
	if c.others != nil {
		err = errors.Join(err, c.rest.Unlock(ctx), c.others.close(ctx))
	}
	return err
}

// newJavaCirculation passes a permit among clients there: once to time it, and once through a relay
// that counts.
func newJavaCirculation(ctx context.Context, a arena, recipe, key string, clients int, size familySizes) (runner, error) {
	relay, err := startRelay(a.redis)
	if err != nil {
		return nil, err
	}
	timed, err := openJavaCirculation(ctx, a, a.redis, recipe, key, clients, size.warm)
	if err != nil {
		relay.close()
		return nil, err
	}
	counted := timed
	if recipe != "curator semaphore" {
		if counted, err = openJavaCirculation(ctx, a, relay.address(), recipe, key+"-counted", clients, size.passes); err != nil {
			relay.close()
			return nil, err
		}
	}
	hold := int(permitHold.Microseconds())
	return steps{func(ctx context.Context) ([]float64, error) {
		times, err := timed.ask(ctx, "handoffs", clients, size.passes, hold)
		if err != nil {
			return nil, err
		}
		commands := notMeasured
		if counted != timed {
			commands, err = perHandoff(size.passes, relay.meter, func(passes int) error {
				_, err := counted.ask(ctx, "handoffs", clients, passes, hold)
				return err
			})
		}
		return append(quantiles(times, 0.5, 0.99), commands), err
	}, func(ctx context.Context) error {
		defer relay.close()
		if counted != timed {
			err = counted.close(ctx)
		}
		return errors.Join(err, timed.close(ctx))
	}}, nil
}

// perHandoff counts the commands of a handoff, without those by which clients come and go: it passes something on for so
// often, and for twice as often. The difference is due to handoffs alone.
func perHandoff(passes int, meter *meter, pass func(passes int) error) (float64, error) {
	begin := meter.commands.Load()
	if err := pass(passes); err != nil {
		return notMeasured, err
	}
	once := meter.commands.Load()
	if err := pass(2 * passes); err != nil {
		return notMeasured, err
	}
	twice := meter.commands.Load()
	return float64((twice-once)-(once-begin)) / float64(passes), nil
}

func openJavaCirculation(ctx context.Context, a arena, redis, recipe, key string, clients, warm int) (*javaPeer, error) {
	p, err := openJava(ctx, a.java, redis, a.zooKeeper, recipe, key)
	if err != nil {
		return nil, err
	}
	if _, err := p.ask(ctx, "hold", permitsOf-1); err != nil {
		return nil, err
	}
	_, err = p.ask(ctx, "handoffs", clients, warm, 0)
	return p, err
}
