// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// distinct is one client with many goroutines, each with a key of its own.
func distinct(size sizes) workload {
	return many(size, workload{name: "distinct", title: "256 goroutines of one client, each with its own key"}, func(peer string) func(int) string {
		return func(i int) string { return fmt.Sprintf("bench:%s:%d", peer, i) }
	})
}

// distinctFirstUse is distinct with keys that nobody has used before.
func distinctFirstUse(size sizes) workload {
	return many(size, workload{name: "distinct first use", title: "256 goroutines of one client, each key used once"}, func(peer string) func(int) string {
		var n atomic.Int64
		return func(int) string { return fmt.Sprintf("bench:%s:once:%d", peer, n.Add(1)) }
	})
}

// many is a workload of one client with many goroutines. keys returns how the keys of a peer's
// goroutines are named.
func many(size sizes, is workload, keys func(peer string) func(member int) string) workload {
	is.metrics = []metric{
		{"rate", "locks/s", true},
		{Name: "longest wait", Unit: "ms"},
		{Name: "client's CPU", Unit: "µs/lock"},
		{Name: "Redis's CPU", Unit: "µs/lock"},
	}
	is.rounds = size.rounds
	is.prepare = func(ctx context.Context, w world, p peer) (runner, error) {
		cpu, err := newCPUMeter(w)
		if err != nil {
			return nil, err
		}
		c, err := newCrowd(ctx, w, p, 1, 256, size.window)
		if err == nil {
			c.key = keys(p.name)
		}
		return distinctCrowd{c, cpu}, err
	}
	return is
}

// hot is clients whose goroutines all request the same key and hold it for no time.
func hot(size sizes, clients, goroutines int) workload {
	return workload{
		name:  fmt.Sprintf("hot %d × %d", clients, goroutines),
		title: fmt.Sprintf("One hot key: %s of %s each, held for no time", count(clients, "client"), count(goroutines, "goroutine")),
		metrics: []metric{
			{"rate", "locks/s", true},
			{Name: "longest wait", Unit: "ms"},
			{Name: "longest a client goes without", Unit: "ms"},
			{Name: "turns of another meanwhile"},
			{"Jain's index", "", true},
			{Name: "stuck", Unit: "goroutines"},
		},
		rounds:   size.rounds,
		leaveOut: waits,
		prepare: func(ctx context.Context, w world, p peer) (runner, error) {
			c, err := newCrowd(ctx, w, p, clients, goroutines, size.window)
			if err == nil {
				c.key = func(int) string { return "bench:hot:" + p.name }
			}
			return c, err
		},
	}
}

// A crowd is the goroutines of one or more clients that lock and unlock for a while.
type crowd struct {
	clients []client
	members []*member
	window  time.Duration
	key     func(member int) string
	turns   turns
}

type member struct {
	worker worker
	client *tenures

	locks   int
	longest time.Duration // the longest wait for a key
	stuck   bool          // the wait was cut short
}

// tenures records when a client had the key.
type tenures struct {
	locks   atomic.Int64
	last    atomic.Int64 // ns since the round's start
	without atomic.Int64 // the longest it was without the key, in ns
}

// got records that the client had the key until now.
func (t *tenures) got(now time.Duration) {
	gap := int64(now) - t.last.Swap(int64(now))
	for {
		longest := t.without.Load()
		if gap <= longest || t.without.CompareAndSwap(longest, gap) {
			return
		}
	}
}

func newCrowd(ctx context.Context, w world, p peer, clients, goroutines int, window time.Duration) (*crowd, error) {
	opened, err := openClients(ctx, p, w, clients)
	if err != nil {
		return nil, err
	}
	c := &crowd{clients: opened, window: window}
	for _, cl := range opened {
		t := new(tenures)
		for range goroutines {
			work, err := cl.worker(ctx)
			if err != nil {
				return nil, err
			}
			c.members = append(c.members, &member{worker: work, client: t})
		}
	}
	return c, nil
}

// lateness is how long after the window goroutines may still wait for the key. Then the wait is cut
// short.
const lateness = 3 * time.Second

func (c *crowd) round(ctx context.Context) ([]float64, error) {
	elapsed, err := c.lockFor(ctx)
	if err != nil {
		return nil, err
	}
	total, stuck := 0, 0
	var longest time.Duration
	var shares []float64
	var without time.Duration
	seen := make(map[*tenures]bool)
	for _, m := range c.members {
		total += m.locks
		longest = max(longest, m.longest)
		if m.stuck {
			stuck++
		}
		if len(c.clients) == 1 { // fairness is then between goroutines
			shares = append(shares, float64(m.locks))
		}
		if !seen[m.client] {
			seen[m.client] = true
			if len(c.clients) > 1 {
				shares = append(shares, float64(m.client.locks.Load()))
			}
			m.client.got(elapsed) // counts clients that still wait
			without = max(without, time.Duration(m.client.without.Load()))
		}
	}
	return []float64{
		float64(total) / elapsed.Seconds(), millis(longest), millis(without), c.turns.unfairness(len(c.clients)), jain(shares), float64(stuck),
	}, nil
}

// lockFor lets all members lock and unlock until the window ends, and returns its length. Later
// locks do not count, but the time waited for them until then does.
func (c *crowd) lockFor(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, c.window+lateness)
	defer cancel()
	c.turns.begin()
	for _, m := range c.members {
		m.locks, m.longest, m.stuck = 0, 0, false
		m.client.locks.Store(0)
		m.client.last.Store(0)
		m.client.without.Store(0)
	}
	var failed atomic.Pointer[error]
	var working sync.WaitGroup
	start := time.Now()
	for i, m := range c.members {
		working.Go(func() {
			if err := m.lockUntil(ctx, c.key(i), start, c.window, &c.turns); err != nil && ctx.Err() == nil {
				failed.CompareAndSwap(nil, &err)
			}
		})
	}
	working.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return c.window, nil
}

func (m *member) lockUntil(ctx context.Context, key string, start time.Time, window time.Duration, turns *turns) error {
	asked := time.Duration(0)
	for {
		h, err := m.worker.lock(ctx, key)
		now := time.Since(start)
		m.longest = max(m.longest, min(now, window)-asked)
		if err != nil {
			m.stuck = ctx.Err() != nil
			return err
		}
		if now < window {
			m.locks++
			m.client.locks.Add(1)
			m.client.got(now)
			turns.has(m.client)
		}
		// A lock is given back even if the round has ended.
		if err := h.Unlock(context.WithoutCancel(ctx)); err != nil || now >= window {
			return err
		}
		asked = now
	}
}

func (c *crowd) close(ctx context.Context) error { return closeClients(ctx, c.clients) }

// A distinctCrowd reports the cost of each lock. It leaves out the metrics that have a meaning only
// for one key.
type distinctCrowd struct {
	*crowd
	cpu *cpuMeter
}

func (d distinctCrowd) round(ctx context.Context) ([]float64, error) {
	before, err := d.cpu.now(ctx)
	if err != nil {
		return nil, err
	}
	row, err := d.crowd.round(ctx)
	if err != nil {
		return nil, err
	}
	after, err := d.cpu.now(ctx)
	used := after.since(before)
	locks := float64(len(d.members)) // each locks once more after the window
	for _, m := range d.members {
		locks += float64(m.locks)
	}
	return []float64{row[0], row[1], 1e6 * used.client / locks, 1e6 * used.redis / locks}, err
}

func (d distinctCrowd) close(ctx context.Context) error {
	d.cpu.close()
	return d.crowd.close(ctx)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

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

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
