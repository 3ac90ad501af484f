// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// A crowd is the goroutines of one or more clients that lock and unlock for a while.
type crowd struct {
	members []*member
	clients int
	window  time.Duration
	key     func(member int) string
}

type member struct {
	lock   locker
	client int
	got    []time.Duration // when it got a key, since the round's start
	stuck  bool            // its last wait was cut short
}

func (s *stage) crowd(clients, goroutines int, window time.Duration) *crowd {
	c := &crowd{clients: clients, window: window, key: func(int) string { return s.key }}
	for i, lock := range s.workers(clients, goroutines) {
		c.members = append(c.members, &member{lock: lock, client: i / goroutines})
	}
	return c
}

// contended is a crowd that wants one key.
func contended(size sizes, clients, goroutines int) prepare {
	return func(_ context.Context, s *stage) round {
		c := s.crowd(clients, goroutines, size.window)
		return func(ctx context.Context) []float64 {
			total := c.run(ctx)
			without := c.perClient()
			var shares []float64
			for _, got := range without {
				shares = append(shares, float64(len(got)))
			}
			if clients == 1 { // fairness is then between goroutines
				shares = nil
				for _, m := range c.members {
					shares = append(shares, float64(len(m.got)))
				}
			}
			return []float64{
				float64(total) / c.window.Seconds(), millis(c.longestWait()), millis(c.longest(without)), unfairness(without), jain(shares), c.stuck(),
			}
		}
	}
}

// distinct is one client with many goroutines, each with a key of its own. It reports the cost of each lock.
func distinct(size sizes, keys naming) prepare {
	return func(_ context.Context, s *stage) round {
		redis, c := s.meterless(), s.crowd(1, 256, size.window)
		c.key = keys(s)
		return func(ctx context.Context) []float64 {
			before := cpuSince(ctx, redis, cpuTime{})
			total := c.run(ctx)
			used := cpuSince(ctx, redis, before)
			locks := float64(total + len(c.members)) // each locks once more after the window
			return []float64{
				float64(total) / c.window.Seconds(), millis(c.longestWait()), 1e6 * used.client / locks, 1e6 * used.redis / locks,
			}
		}
	}
}

// countedKey is a crowd of clients with a goroutine each, whose commands are counted.
func countedKey(size sizes, clients int) prepare {
	return func(_ context.Context, s *stage) round {
		var m meter
		s.dial = m.dial
		c := s.crowd(clients, 1, size.window)
		return func(ctx context.Context) []float64 {
			before := m.commands()
			total := c.run(ctx) + clients // each gets the key once more after the window
			return []float64{float64(m.commands()-before) / float64(total)}
		}
	}
}

// lateness is how long after the window goroutines may still wait for the key. Then the wait is cut
// short.
const lateness = 3 * time.Second

// run lets all members lock and unlock until the window ends, and returns how many locks there were.
// Later ones do not count, but the time waited for them until then does.
func (c *crowd) run(ctx context.Context) (total int) {
	ctx, cancel := context.WithTimeout(ctx, c.window+lateness)
	defer cancel()
	start := time.Now()
	together(len(c.members), func(i int) { c.members[i].lockUntil(ctx, func() string { return c.key(i) }, start, c.window) })
	for _, m := range c.members {
		total += len(m.got)
	}
	return total
}

func (m *member) lockUntil(ctx context.Context, key func() string, start time.Time, window time.Duration) {
	m.got, m.stuck = m.got[:0], false
	for {
		h, err := m.lock(ctx, key())
		now := time.Since(start)
		if m.stuck = err != nil && ctx.Err() != nil; m.stuck {
			return
		}
		check(err)
		if now < window {
			m.got = append(m.got, now)
		}
		// A lock is given back even if the round has ended.
		if err := h.Unlock(context.WithoutCancel(ctx)); ctx.Err() == nil {
			check(err)
		}
		if now >= window {
			return
		}
	}
}

// longestWait is how long a member has waited for a key.
func (c *crowd) longestWait() (longest time.Duration) {
	for _, m := range c.members {
		longest = max(longest, longestGap(m.got, c.window))
	}
	return longest
}

// perClient returns when the goroutines of each client got a key.
func (c *crowd) perClient() [][]time.Duration {
	all := make([][]time.Duration, c.clients)
	for _, m := range c.members {
		all[m.client] = append(all[m.client], m.got...)
	}
	for _, got := range all {
		slices.Sort(got)
	}
	return all
}

// longest is how long a client was without the key.
func (c *crowd) longest(perClient [][]time.Duration) (longest time.Duration) {
	for _, got := range perClient {
		longest = max(longest, longestGap(got, c.window))
	}
	return longest
}

// longestGap returns the longest time between two, from the start to the end.
func longestGap(times []time.Duration, end time.Duration) (longest time.Duration) {
	last := time.Duration(0)
	for _, t := range times {
		longest, last = max(longest, t-last), t
	}
	return max(longest, end-last)
}

// stuck is how many members waited in vain.
func (c *crowd) stuck() (n float64) {
	for _, m := range c.members {
		if m.stuck {
			n++
		}
	}
	return n
}

// unfairness returns the largest number of turns that one client had between two turns of another.
// A turn is as long as the key passes between a client's own goroutines. With 1, no client waited for
// more than one holding of each other client, and for the handoffs between them. One client alone has
// no value.
func unfairness(perClient [][]time.Duration) float64 {
	if len(perClient) == 1 {
		return notMeasured
	}
	type holding struct {
		at     time.Duration
		client int
	}
	var order []holding
	for client, got := range perClient {
		for _, at := range got {
			order = append(order, holding{at, client})
		}
	}
	slices.SortFunc(order, func(a, b holding) int { return int(a.at - b.at) })
	worst, last := 0, -1
	meanwhile := make(map[int]map[int]int) // for each client, the others' turns since its last turn
	for _, now := range order {
		if now.client == last {
			continue
		}
		last = now.client
		for waiting, others := range meanwhile {
			if waiting != last {
				others[last]++
				worst = max(worst, others[last])
			}
		}
		meanwhile[last] = make(map[int]int)
	}
	return float64(worst)
}

// jain is Jain's fairness index: 1 if all have the same share, 1/n if one has
// everything. R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of Fairness and
// Discrimination for Resource Allocation in Shared Computer Systems" (1984).
func jain(shares []float64) float64 {
	var sum, squares float64
	for _, x := range shares {
		sum += x
		squares += x * x
	}
	if squares == 0 {
		return math.NaN()
	}
	return sum * sum / (float64(len(shares)) * squares)
}

// drain is many waiters that wait for one key at once and hold it for no time.
func drain(size sizes) workload {
	const clients = 5
	each := size.drained / clients
	return workload{
		name:     "drain",
		title:    fmt.Sprintf("%d waiters of %d clients, from the first unlock to the last", clients*each, clients),
		metrics:  []metric{{Name: "time", Unit: "ms"}, {Name: "stuck", Unit: "waiters"}},
		rounds:   max(size.rounds/4, 1),
		leaveOut: waits,
		prepare: func(_ context.Context, s *stage) round {
			holder, waiters := s.client().worker(), s.workers(clients, each)
			return func(ctx context.Context) []float64 { return drained(ctx, holder, waiters, s.key) }
		},
	}
}

// The waiters may take so long to come, and so long to be served.
const (
	gathering = 300 * time.Millisecond
	draining  = 10 * time.Second
)

func drained(ctx context.Context, holder locker, waiters []locker, key string) []float64 {
	first := must(holder(ctx, key))
	ctx, cancel := context.WithTimeout(ctx, draining)
	defer cancel()
	var served atomic.Int64
	wait := beside(func() {
		together(len(waiters), func(i int) {
			h, err := waiters[i](ctx, key)
			if err == nil && h.Unlock(context.WithoutCancel(ctx)) == nil {
				served.Add(1)
			}
		})
	})
	time.Sleep(gathering)
	start := time.Now()
	check(first.Unlock(ctx))
	wait()
	took := millis(time.Since(start))
	stuck := len(waiters) - int(served.Load())
	if stuck > 0 {
		took = notMeasured // it never ended
	}
	return []float64{took, float64(stuck)}
}
