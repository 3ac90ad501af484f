// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
)

// keeping measures the cost of many held keys for the one process that holds them. Each round is a
// process of its own, so that nothing else counts.
func keeping(size sizes, keys int) workload {
	return workload{
		name:  fmt.Sprintf("held %d", keys),
		title: fmt.Sprintf("%d keys held by one client, TTL %v", keys, size.heldTTL),
		metrics: []metric{
			{Name: "heap", Unit: "B/key"},
			{Name: "goroutines", Unit: "per key"},
			{Name: "renewals", Unit: "commands/s"},
			{Name: "client's CPU", Unit: "ms/s"},
			{Name: "Redis's CPU", Unit: "ms/s"},
			{Name: "renewing", Unit: "ms per round"},
			{Name: "lock p99 without", Unit: "µs"},
			{Name: "lock p99 meanwhile", Unit: "µs"},
		},
		rounds: size.heldRounds,
		leaveOut: func(p peer) string {
			switch {
			case !p.is.renews:
				return "it renews nothing by itself"
			case keys > p.is.holds && p.is.holds > 0:
				return fmt.Sprintf("measured with up to %d keys", p.is.holds)
			}
			return ""
		},
		prepare: func(_ context.Context, s *stage) round {
			s.ttl = size.heldTTL
			return func(ctx context.Context) (values []float64) {
				s.visit(ctx, "keeper", s.peer, keys, func(c *child) {
					var cost row
					c.hear(&cost)
					values = cost
				})
				return values
			}
		},
		cold:  true,
		limit: 15*time.Second + 6*size.heldTTL + time.Duration(keys)*time.Millisecond/2,
	}
}

// probing is how long the cost of a lock is measured before there are keys, and watched how many
// renewals of each key are observed.
const (
	probing = 2 * time.Second
	watched = 2
)

// keep does the work of a keeper process, and says the values of the metrics.
func keep(ctx context.Context, s *stage, keys int, _ *json.Decoder, out *json.Encoder) {
	redis, k := s.meterless(), s.holding()
	without := k.probe(ctx, probing, nil)
	bytes, goroutines := k.size()
	leases := k.take(ctx, keys)
	more, moreGoroutines := k.size()

	length := watched * s.ttl / 3
	before := cpuSince(ctx, redis, cpuTime{})
	seen := k.watch(ctx, length)
	used := cpuSince(ctx, redis, before)
	perKey, perSecond := 1/float64(keys), 1/length.Seconds()
	cost := row{
		(more - bytes) * perKey, (moreGoroutines - goroutines) * perKey, float64(seen.Commands) * perSecond,
		1000 * used.client * perSecond, 1000 * used.redis * perSecond,
		notMeasured, without, k.probe(ctx, length, k.renewals),
	}
	if k.renewals != nil {
		cost[5] = millis(total(seen.Spans)) / watched
	}
	if s.peer.is.etcd { // its commands are not counted, and Redis has no part in it
		cost[2], cost[4] = notMeasured, notMeasured
	}
	check(out.Encode(cost))
	runtime.KeepAlive(leases) // the keys expire, or end with the server
	s.ends = nil              // which would give the keys back one by one
}

// A holding is the keys, seen from inside the process that holds them.
type holding struct {
	lock     locker
	key      string
	meter    *meter
	renewals *renewals // nil for other peers, whose renewals can't be observed
}

// holding opens a client whose commands are counted, and of asynclock one whose renewals are watched.
func (s *stage) holding() *holding {
	k := &holding{key: s.key + ":", meter: new(meter)}
	s.dial = k.meter.dial
	if s.peer.name == asynclockPeer.name {
		redis := openStore(s.world)
		k.renewals = &renewals{Store: redis}
		c := clientOver(k.renewals, redis, asynclock.WithTTL(s.ttl))
		s.after(c.close)
		k.lock = c.lock
	} else {
		k.lock = s.client().worker()
	}
	return k
}

// takers is how many goroutines take the keys.
const takers = 256

// take takes the keys.
func (k *holding) take(ctx context.Context, keys int) []held {
	leases := make([]held, keys)
	together(takers, func(t int) {
		for i := t; i < keys; i += takers {
			leases[i] = must(k.lock(ctx, k.key+strconv.Itoa(i)))
		}
	})
	return leases
}

// size returns the heap in use and the number of goroutines.
func (k *holding) size() (bytes, goroutines float64) {
	for range 3 { // pools and finalizers release their last objects in later rounds
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc), float64(runtime.NumGoroutine())
}

// An upkeep is the work of the client in a time in which its keys were held and it had no other
// requests.
type upkeep struct {
	Spans    []span // in which renewals were under way
	Keys     int    // the number of renewed keys
	Renewals int    // commands that called a script: these carried them
	Commands int    // of all kinds; each inbox also proves itself every 5 to 10 s
}

// watch observes the client for the given time. It leaves out values that can't be observed.
func (k *holding) watch(ctx context.Context, length time.Duration) (seen upkeep) {
	commands, scripts := k.meter.commands(), k.meter.scripts()
	if k.renewals != nil {
		k.renewals.reset()
	}
	select {
	case <-time.After(length):
	case <-ctx.Done():
		check(ctx.Err())
	}
	if k.renewals != nil {
		seen.Spans, seen.Keys = k.renewals.reset()
	}
	seen.Commands, seen.Renewals = k.meter.commands()-commands, k.meter.scripts()-scripts
	return seen
}

// probe locks and unlocks one more key over and over for the given time, and returns the 99th
// percentile in microseconds. If during is given, it counts only the locks that were under way
// together with a renewal.
func (k *holding) probe(ctx context.Context, length time.Duration, during *renewals) float64 {
	var times []float64
	for begin := time.Now(); time.Since(begin) < length; {
		start := time.Now()
		k.lock.pair(ctx, k.key+"probe")
		if during == nil || during.overlaps(start) {
			times = append(times, micros(time.Since(start)))
		}
		time.Sleep(200 * time.Microsecond)
	}
	return quantiles(times, 0.99)[0]
}

// renewals records when a client's renewals are under way. It stands between the client and its
// store.
type renewals struct {
	store.Store

	mu    sync.Mutex
	calls int // under way
	begun time.Time
	ended time.Time
	spans []span // of ended renewals
	keys  int    // renewed
}

// Open puts a session of its own in between.
func (r *renewals) Open(id string, events func(store.Event)) (store.Session, error) {
	s, err := r.Store.Open(id, events)
	return &watchedSession{s, r}, err
}

type watchedSession struct {
	store.Session

	renewals *renewals
}

func (s *watchedSession) Renew(ctx context.Context, batch []store.RenewRequest) []store.RenewReply {
	s.renewals.begin()
	replies := s.Session.Renew(ctx, batch)
	s.renewals.end(replies)
	return replies
}

func (r *renewals) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls == 0 {
		r.begun = time.Now()
	}
	r.calls++
}

func (r *renewals) end(replies []store.RenewReply) {
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

// reset returns when renewals were under way, and for how many keys, and counts anew.
func (r *renewals) reset() (spans []span, keys int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	spans, keys = r.spans, r.keys
	r.spans, r.keys = nil, 0
	return spans, keys
}

// overlaps reports whether a renewal was under way at some time since start.
func (r *renewals) overlaps(start time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls > 0 || r.ended.After(start)
}

// A span is the time of an activity.
type span struct{ Begin, End time.Time }

// meets reports whether s overlaps one of the spans, which are in order and disjoint.
func (s span) meets(spans []span) bool {
	i, _ := slices.BinarySearchFunc(spans, s.Begin, func(other span, t time.Time) int { return other.End.Compare(t) })
	return i < len(spans) && !spans[i].Begin.After(s.End)
}

// total returns the sum of the spans' lengths.
func total(spans []span) (sum time.Duration) {
	for _, s := range spans {
		sum += s.End.Sub(s.Begin)
	}
	return sum
}
