// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	permitHold  = time.Millisecond // how long a permit is held before it is passed on
	permitCrowd = 64               // goroutines that want permits in a client
)

// circulation passes a permit, or a key, among clients. Another client has all other permits throughout.
func circulation(size sizes, clients int) prepare {
	return func(ctx context.Context, s *stage) round {
		if s.peer.name != mutexName {
			others := must(s.asynclock().Semaphore(s.key, permitsOf))
			rest := must(others.Acquire(ctx, permitsOf-1))
			s.after(rest.Unlock)
		}
		var m meter
		s.dial = m.dial
		workers := s.workers(clients, 1)
		return func(ctx context.Context) []float64 {
			p := passes{sent: m.commands, skipped: clients, times: make([]float64, 0, size.passes)}
			together(clients, func(i int) { p.take(ctx, workers[i], s.key) })
			return append(quantiles(p.times, 0.5, 0.99), p.perHandoff())
		}
	}
}

// passes are the handoffs of a round. The first ones, in which everybody comes to wait, do not count,
// and neither do the last ones, behind which fewer and fewer wait.
type passes struct {
	sent    func(...string) int // commands
	skipped int

	mu            sync.Mutex
	given         time.Time
	takes         int
	times         []float64 // as many as fit
	before, after int       // commands sent
}

// take takes and gives back, over and over, until there are enough times.
func (p *passes) take(ctx context.Context, lock locker, key string) {
	for more := true; more; {
		h := must(lock(ctx, key))
		if more = p.took(time.Now()); more {
			time.Sleep(permitHold)
		}
		p.mu.Lock()
		p.given = time.Now()
		p.mu.Unlock()
		check(h.Unlock(ctx))
	}
}

// took reports whether more times are wanted.
func (p *passes) took(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.takes++; p.takes <= p.skipped {
		p.before = p.sent()
		return true
	}
	if len(p.times) < cap(p.times) {
		p.times = append(p.times, micros(now.Sub(p.given)))
		p.after = p.sent()
	}
	return len(p.times) < cap(p.times)
}

// perHandoff is how many commands there were for each handoff that counts.
func (p *passes) perHandoff() float64 {
	return float64(p.after-p.before) / float64(len(p.times))
}

// circulationInJava passes a permit among clients there: once to time it, and once through a relay
// that counts.
func circulationInJava(size sizes, clients int) prepare {
	hold := int(permitHold.Microseconds())
	return func(ctx context.Context, s *stage) round {
		open := func(redis, suffix string, warm int) *javaPeer {
			p := s.javaBeside(ctx, redis, suffix)
			p.ask(ctx, "hold", permitsOf-1)
			p.ask(ctx, "handoffs", clients, warm, 0)
			return p
		}
		timed := open(s.redis, "", size.warm)
		if s.peer.needs == "curator" { // it does not speak to Redis
			return func(ctx context.Context) []float64 {
				return append(quantiles(timed.ask(ctx, "handoffs", clients, size.passes, hold), 0.5, 0.99), notMeasured)
			}
		}
		relay, m := s.startRelay()
		counted := open(relay, "-counted", size.passes)
		return func(ctx context.Context) []float64 {
			times := timed.ask(ctx, "handoffs", clients, size.passes, hold)
			commands := perHandoff(size.passes, m.commands, func(passes int) { counted.ask(ctx, "handoffs", clients, passes, hold) })
			return append(quantiles(times, 0.5, 0.99), commands)
		}
	}
}

// perHandoff counts the commands of a handoff, without those by which clients come and go: it passes something on for so
// often, and for twice as often. The difference is due to handoffs alone.
func perHandoff(passes int, sent func(...string) int, pass func(passes int)) float64 {
	begin := sent()
	pass(passes)
	once := sent()
	pass(2 * passes)
	twice := sent()
	return float64((twice-once)-(once-begin)) / float64(passes)
}

// permitsInCrowd is many goroutines of one client. With yields, each holder lets others run.
func permitsInCrowd(size sizes, yields bool) prepare {
	return func(_ context.Context, s *stage) round {
		local := semaphore.NewWeighted(permitsOf)
		lock := locker(func(ctx context.Context, _ string) (held, error) {
			return localUnlock{local}, local.Acquire(ctx, 1)
		})
		if s.peer.name != localName {
			lock = s.client().worker()
		}
		return func(ctx context.Context) []float64 {
			return rate(size.window, permitCrowd, func() {
				h := must(lock(ctx, s.key))
				if yields {
					runtime.Gosched()
				}
				check(h.Unlock(ctx))
			})
		}
	}
}

type localUnlock struct{ permits *semaphore.Weighted }

// Unlock gives a permit back.
func (l localUnlock) Unlock(context.Context) error {
	l.permits.Release(1)
	return nil
}

func permitsInJava(size sizes) prepare {
	return func(ctx context.Context, s *stage) round { return javaCrowd(ctx, s, size, permitCrowd) }
}
