// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/elect"
)

// observed is the time until everybody knows who leads now.
func observed(size familySizes) (c comparison) {
	c.workload = workload{
		name: "election observed", title: fmt.Sprintf("From Resign to the next leader on the channels of %d observing clients", size.observers),
		metrics: []metric{{Name: "p99", Unit: "ms"}, {Name: "p50", Unit: "ms"}},
	}
	c.contestants = []contestant{
		{peer: peer{name: asynclockPeer.name, setting: "elect.Observe, no options, a client each"}},
		{peer: peer{name: etcdName, setting: "etcd: Election.Observe, a client each"}, needs: etcdName},
	}
	c.targets = []target{{limit: 2}}
	c.absent = "Redisson has no election; Curator's LeaderSelector tells nobody, and has to be asked"
	c.inGo = func(ctx context.Context, a arena, p peer) (runner, error) {
		return newAudience(ctx, a, p.name, c.key(p.name), size)
	}
	return c
}

// observers are clients that observe the leader.
type observers interface {
	// observe makes one more client. It calls see for each term that it is told of, until ctx ends.
	observe(ctx context.Context, a arena, key string, see func(term int64)) error
	close(ctx context.Context) error
}

// ourObservers are clients of asynclock.
type ourObservers struct{ clients []client }

func (o *ourObservers) observe(ctx context.Context, a arena, key string, see func(term int64)) error {
	c, err := openAsynclock(a.world)
	if err != nil {
		return err
	}
	o.clients = append(o.clients, &familyClient{asynclockClient: c})
	seen, err := elect.Observe(ctx, c.locks, key)
	if err != nil {
		return err
	}
	go func() { // ends with ctx
		for leader := range seen {
			see(leader.Token)
		}
	}()
	return nil
}

func (o *ourObservers) close(ctx context.Context) error { return closeClients(ctx, o.clients) }

// An audience is observers, and candidates whom they observe.
type audience struct {
	them       candidates
	succession *succession
	observers  observers
	stop       context.CancelFunc
	passes     int

	mu    sync.Mutex
	seen  []int64       // by each of them: the largest term
	times []time.Time   // and when
	news  chan struct{} // of length one
}

func newAudience(ctx context.Context, a arena, name, key string, size familySizes) (*audience, error) {
	them, err := openCandidates(ctx, a, name, key)
	if err != nil {
		return nil, err
	}
	s, err := newSuccession(ctx, them)
	if err != nil {
		return nil, err
	}
	observing, stop := context.WithCancel(context.WithoutCancel(ctx)) // ends with close
	all := &audience{
		them: them, succession: s, stop: stop, passes: size.passes / 5,
		seen: make([]int64, size.observers), times: make([]time.Time, size.observers), news: make(chan struct{}, 1),
	}
	all.observers = new(ourObservers)
	if name == etcdName {
		all.observers = new(etcdObservers)
	}
	for i := range size.observers {
		if err := all.observers.observe(observing, a, key, func(term int64) { all.see(i, term) }); err != nil {
			return nil, errors.Join(err, all.close(ctx))
		}
	}
	return all, nil
}

func (a *audience) see(i int, term int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if term <= a.seen[i] {
		return // nobody leads, or it is known
	}
	a.seen[i], a.times[i] = term, time.Now()
	select {
	case a.news <- struct{}{}:
	default: // there are some already
	}
}

// saw returns how long after start each saw the term, if all of them did.
func (a *audience) saw(term int64, start time.Time) (times []float64, all bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, last := range a.seen {
		if last < term {
			return nil, false
		}
		times = append(times, millis(a.times[i].Sub(start)))
	}
	return times, true
}

func (a *audience) round(ctx context.Context) ([]float64, error) {
	var times []float64
	begin := time.Now()
	for n := 0; n == 0 || n < a.passes && time.Since(begin) < enough; n++ {
		passed, err := a.succession.pass(ctx)
		if err != nil {
			return nil, err
		}
		for {
			took, all := a.saw(passed.term, passed.resigned)
			if all {
				times = append(times, took...)
				break
			}
			select {
			case <-a.news:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
	return quantiles(times, 0.99, 0.5), nil
}

func (a *audience) close(ctx context.Context) error {
	a.stop()
	return errors.Join(a.observers.close(ctx), a.them.close(ctx))
}
