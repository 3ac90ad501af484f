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

// A stopwatch has what single steps took. It is for one goroutine.
type stopwatch struct{ took []time.Duration }

func (s *stopwatch) add(began time.Time) { s.took = append(s.took, time.Since(began)) }

// run takes the measurements, one after the other.
func (b *bench) run(ctx context.Context) (all []measurement, err error) {
	for _, m := range []struct {
		name    string
		measure func(context.Context) ([]time.Duration, error)
	}{
		{"alone", b.alone}, {"handoff", b.handoff}, {"together", b.together}, {"renewing", b.renewing},
	} {
		took, err := m.measure(ctx)
		if err != nil {
			return all, fmt.Errorf("%s: %w", m.name, err)
		}
		all = append(all, summarize(m.name, took, b.duration/4))
	}
	return all, nil
}

// summarize makes a measurement of what steps took.
func summarize(name string, took []time.Duration, in time.Duration) measurement {
	slices.Sort(took)
	at := func(share float64) float64 {
		if len(took) == 0 {
			return 0
		}
		return float64(took[int(share*float64(len(took)-1))].Nanoseconds()) / 1000
	}
	return measurement{name, len(took), float64(len(took)) / in.Seconds(), at(0.5), at(0.99)}
}

// over returns a function that says whether a quarter of the time has passed since now.
func (b *bench) over() func() bool {
	end := time.Now().Add(b.duration / 4)
	return func() bool { return time.Now().After(end) }
}

// alone takes free keys, one after the other.
func (b *bench) alone(ctx context.Context) ([]time.Duration, error) { return b.pairs(ctx, "alone/") }

// pairs locks and unlocks, at least once.
func (b *bench) pairs(ctx context.Context, name string) ([]time.Duration, error) {
	var watch stopwatch
	over := b.over()
	for i := 0; i == 0 || !over(); i++ {
		began := time.Now()
		lease, err := b.locks.Lock(ctx, b.prefix+name+strconv.Itoa(i%64))
		if err != nil {
			return nil, err
		}
		if err := lease.Unlock(context.WithoutCancel(ctx)); err != nil {
			return nil, err
		}
		watch.add(began)
	}
	return watch.took, nil
}

// handoff passes a key to and fro between two clients. Where nobody can say that a client waits, it measures nothing.
func (b *bench) handoff(ctx context.Context) ([]time.Duration, error) {
	key, clients := b.prefix+"handoff", []*asynclock.Client{b.locks, b.other}
	lease, err := b.locks.Lock(ctx, key)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lease.Unlock(context.WithoutCancel(ctx)) }()
	var watch stopwatch
	over := b.over()
	for i := 1; i == 1 || !over(); i++ {
		waiting, leave := context.WithCancel(ctx)
		next := clients[i%2].LockChan(waiting, key)
		queued, err := b.queued(ctx, key, over)
		if err != nil || !queued {
			leave()
			drop(next)
			return watch.took, err
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
	return watch.took, nil
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

// together has many goroutines do what alone does.
func (b *bench) together(ctx context.Context) ([]time.Duration, error) {
	var (
		workers sync.WaitGroup
		mu      sync.Mutex
		all     []time.Duration
		failed  error
	)
	for i := range b.clients {
		workers.Go(func() { // ends when its time is over
			took, err := b.pairs(ctx, fmt.Sprintf("together/%d/", i))
			mu.Lock()
			defer mu.Unlock()
			all, failed = append(all, took...), cmp.Or(failed, err)
		})
	}
	workers.Wait()
	return all, failed
}

// renewing does what alone does, while other keys are held.
func (b *bench) renewing(ctx context.Context) (took []time.Duration, err error) {
	var leases []*asynclock.Lease
	defer func() {
		var workers sync.WaitGroup
		for _, lease := range leases {
			workers.Go(func() { _ = lease.Unlock(context.WithoutCancel(ctx)) })
		}
		workers.Wait()
	}()
	for i := range b.keys {
		lease, err := b.locks.Lock(ctx, b.prefix+"renewing/held/"+strconv.Itoa(i), asynclock.WithTTL(benchTTL))
		if err != nil {
			return nil, err
		}
		leases = append(leases, lease)
	}
	return b.pairs(ctx, "renewing/")
}
