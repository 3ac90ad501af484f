// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

// A holding is the keys, watched from inside the process that holds them.
type holding struct {
	worker   worker
	key      string
	renewals *renewals // nil for other peers, whose renewals can't be seen
	cpu      *cpuMeter
}

func newKeeping(ctx context.Context, p peer, w world) (*holding, error) {
	k := &holding{key: "bench:held:" + p.name + ":"}
	var err error
	if k.cpu, err = newCPUMeter(w); err != nil {
		return nil, err
	}
	if p.name == asynclockPeer.name {
		k.renewals = new(renewals)
		k.worker, err = k.renewals.client(w)
		return k, err
	}
	c, err := p.open(ctx, w)
	if err != nil {
		return nil, err
	}
	k.worker, err = c.worker(ctx)
	return k, err
}

// takers is how many goroutines take the keys.
const takers = 256

// take takes the keys.
func (k *holding) take(ctx context.Context, keys int) ([]held, error) {
	leases := make([]held, keys)
	errs := make([]error, takers)
	var taking sync.WaitGroup
	for t := range takers {
		taking.Go(func() {
			for i := t; i < keys && errs[t] == nil; i += takers {
				leases[i], errs[t] = k.worker.lock(ctx, k.key+strconv.Itoa(i))
			}
		})
	}
	taking.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return leases, nil
}

// size returns the heap in use and the number of goroutines.
func (k *holding) size() (bytes, goroutines float64) {
	for range 3 { // pools and finalizers give up their last objects in later rounds
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc), float64(runtime.NumGoroutine())
}

// watch fills in what holding costs while nothing else is done.
func (k *holding) watch(ctx context.Context, span time.Duration, m *meter, cost *heldCost) error {
	commands := m.commands.Load()
	before, err := k.cpu.now(ctx)
	if err != nil {
		return err
	}
	if k.renewals != nil {
		k.renewals.forget()
	}
	time.Sleep(span)
	cost.Commands = float64(m.commands.Load() - commands)
	after, err := k.cpu.now(ctx)
	used := after.since(before)
	cost.ClientCPU, cost.RedisCPU = used.client, used.redis
	cost.Renewing = -1
	if k.renewals != nil {
		spans, _, _ := k.renewals.done()
		cost.Renewing = total(spans).Seconds() / watched
	}
	return err
}

// probe locks and unlocks one more key over and over for span, and returns the
// 99th percentile in microseconds; if during is given, of those locks that were
// under way together with a renewal.
func (k *holding) probe(ctx context.Context, span time.Duration, during *renewals) float64 {
	var times []float64
	for begin := time.Now(); time.Since(begin) < span; {
		start := time.Now()
		h, err := k.worker.lock(ctx, k.key+"probe")
		if err != nil {
			return -1
		}
		if h.Unlock(ctx) != nil {
			return -1
		}
		if during == nil || during.overlaps(start) {
			times = append(times, micros(time.Since(start)))
		}
		time.Sleep(200 * time.Microsecond)
	}
	if len(times) == 0 {
		return -1
	}
	return quantiles(times, 0.99)[0]
}

// renewals notes when a client's renewals are under way. It stands between the
// client and its store.
type renewals struct {
	asynclock.Store

	mu       sync.Mutex
	calls    int // under way
	begun    time.Time
	ended    time.Time
	spans    []span // that are over
	keys     int    // renewed
	commands int    // that carried them
}

func (r *renewals) client(w world) (*asynclockClient, error) {
	store, err := redisstore.Open(rueidis.ClientOption{InitAddress: []string{w.redis}, DialCtxFn: w.rueidisDial()})
	if err != nil {
		return nil, err
	}
	r.Store = store
	locks, err := asynclock.New(r, asynclock.WithTTL(w.ttl))
	return &asynclockClient{store, locks}, err
}

// Join puts a session of its own between.
func (r *renewals) Join(id string, events func(asynclock.Event)) (asynclock.Session, error) {
	s, err := r.Store.Join(id, events)
	return &watchedSession{s, r}, err
}

type watchedSession struct {
	asynclock.Session

	renewals *renewals
}

func (s *watchedSession) Renew(ctx context.Context, batch []asynclock.RenewRequest) []asynclock.RenewReply {
	s.renewals.begin(len(batch))
	replies := s.Session.Renew(ctx, batch)
	s.renewals.end(replies)
	return replies
}

func (r *renewals) begin(requests int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.commands += (requests + 99) / 100 // as redisstore's Renew does it
	if r.calls == 0 {
		r.begun = time.Now()
	}
	r.calls++
}

func (r *renewals) end(replies []asynclock.RenewReply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range replies {
		if replies[i].Err == nil {
			r.keys++
		}
	}
	r.calls--
	if r.calls == 0 {
		r.ended = time.Now()
		r.spans = append(r.spans, span{r.begun, r.ended})
	}
}

func (r *renewals) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spans, r.keys, r.commands = nil, 0, 0
}

// done is when renewals were under way, of how many keys, in how many commands.
func (r *renewals) done() (spans []span, keys, commands int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.spans), r.keys, r.commands
}

// overlaps reports whether a renewal was under way at some time since start.
func (r *renewals) overlaps(start time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls > 0 || r.ended.After(start)
}
