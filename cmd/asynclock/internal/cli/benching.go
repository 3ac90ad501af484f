// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// benchTTL is the TTL of the leases that are renewed while bench measures: a third of it passes between renewals.
const benchTTL = 3 * time.Second

// A bench measures, with keys under a prefix that nobody else has.
type bench struct {
	benchOptions

	locks, other *asynclock.Client
	prefix       string
}

// A stopwatch has what single steps took, and all of them. It is for one goroutine.
type stopwatch struct {
	began time.Time
	took  []time.Duration
	all   time.Duration
}

func (s *stopwatch) add(began time.Time) {
	now := time.Now()
	s.took, s.all = append(s.took, now.Sub(began)), now.Sub(s.began)
}

func begin() *stopwatch { return &stopwatch{began: time.Now()} }

// run takes the measurements, one after the other.
func (b *bench) run(ctx context.Context) (all []measurement, err error) {
	for _, m := range []struct {
		name    string
		measure func(context.Context) (*stopwatch, error)
	}{
		{"alone", b.alone}, {"handoff", b.handoff}, {"together", b.together}, {"renewing", b.renewing},
	} {
		watch, err := m.measure(ctx)
		if err != nil {
			return all, fmt.Errorf("%s: %w", m.name, err)
		}
		all = append(all, summarize(m.name, watch))
	}
	return all, nil
}

// summarize makes a measurement of what steps took.
func summarize(name string, watch *stopwatch) measurement {
	n := len(watch.took)
	if n == 0 {
		return measurement{Name: name}
	}
	slices.Sort(watch.took)
	at := func(share float64) float64 { return float64(watch.took[int(share*float64(n-1))].Nanoseconds()) / 1000 }
	return measurement{name, n, float64(n) / watch.all.Seconds(), at(0.5), at(0.99)}
}

// over returns a function that says whether a quarter of the time has passed since now.
func (b *bench) over() func() bool {
	end := time.Now().Add(b.duration / 4)
	return func() bool { return time.Now().After(end) }
}

// alone takes a free key again and again.
func (b *bench) alone(ctx context.Context) (*stopwatch, error) { return b.pairs(ctx, "alone") }

// pairs locks and unlocks, at least once.
func (b *bench) pairs(ctx context.Context, name string) (*stopwatch, error) {
	watch, over := begin(), b.over()
	for len(watch.took) == 0 || !over() {
		began := time.Now()
		lease, err := b.locks.Lock(ctx, b.prefix+name)
		if err != nil {
			return nil, err
		}
		if err := lease.Unlock(context.WithoutCancel(ctx)); err != nil {
			return nil, err
		}
		watch.add(began)
	}
	return watch, nil
}

// handoff passes a key to and fro between two clients. Where nobody can say that a client waits, it measures nothing.
func (b *bench) handoff(ctx context.Context) (*stopwatch, error) {
	key, clients := b.prefix+"handoff", []*asynclock.Client{b.locks, b.other}
	lease, err := b.locks.Lock(ctx, key)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lease.Unlock(context.WithoutCancel(ctx)) }()
	watch, over := begin(), b.over()
	for i := 1; i == 1 || !over(); i++ {
		waiting, leave := context.WithCancel(ctx)
		next := clients[i%2].LockChan(waiting, key)
		queued, err := b.queued(ctx, key, over)
		if err != nil || !queued {
			leave()
			drop(next)
			return watch, err
		}
		began := time.Now()
		err = lease.Unlock(context.WithoutCancel(ctx))
		taken, err2 := (<-next).Lease()
		leave()
		if err := errors.Join(err, err2); err != nil {
			return nil, err
		}
		watch.add(began)
		lease = taken
	}
	return watch, nil
}

// drop gives back the lease that a future may bring.
func drop(future <-chan asynclock.Result) {
	if lease, err := (<-future).Lease(); err == nil {
		_ = lease.Unlock(context.Background())
	}
}

// queued waits until somebody waits for the key, and reports whether that is so before the time is over.
func (b *bench) queued(ctx context.Context, key string, over func() bool) (bool, error) {
	for {
		info, err := b.locks.Inspect(ctx, key)
		if err != nil || info.Waiters > 0 || over() {
			return info.Waiters > 0, err
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// together has many goroutines do what alone does, each with its own key.
func (b *bench) together(ctx context.Context) (*stopwatch, error) {
	var mu sync.Mutex
	all := begin()
	err := each(b.clients, b.clients, func(i int) error {
		watch, err := b.pairs(ctx, fmt.Sprint("together/", i))
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		all.took, all.all = append(all.took, watch.took...), time.Since(all.began)
		return nil
	})
	return all, err
}

// renewing does what alone does, while other keys are held.
func (b *bench) renewing(ctx context.Context) (watch *stopwatch, err error) {
	leases := make([]*asynclock.Lease, b.keys)
	defer func() {
		_ = each(len(leases), takers, func(i int) error {
			if leases[i] == nil {
				return nil
			}
			return leases[i].Unlock(context.WithoutCancel(ctx))
		})
	}()
	err = each(len(leases), takers, func(i int) (err error) {
		key := b.prefix + "held/" + strconv.Itoa(i)
		leases[i], err = b.locks.Lock(ctx, key, asynclock.WithTTL(benchTTL))
		if errors.Is(err, asynclock.ErrInvalidOption) { // ZooKeeper wants it as long as its sessions are
			leases[i], err = b.locks.Lock(ctx, key)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return b.pairs(ctx, "renewing")
}

// takers is how many goroutines take and give back the keys that are held.
const takers = 32

// each calls do for 0 to n-1, from so many goroutines, and returns the first error.
func each(n, goroutines int, do func(int) error) (failed error) {
	var (
		workers sync.WaitGroup
		next    atomic.Int64
		mu      sync.Mutex
	)
	for range goroutines {
		workers.Go(func() { // ends when all has been called, or one has failed
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				err := do(i)
				mu.Lock()
				failed = cmp.Or(failed, err)
				over := failed != nil
				mu.Unlock()
				if over {
					return
				}
			}
		})
	}
	workers.Wait()
	return failed
}
