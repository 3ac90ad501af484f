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
	without := k.probeFor(ctx, probing)
	bytes, goroutines := inUse()
	leases := k.take(ctx, keys)
	more, moreGoroutines := inUse()

	length := watched * s.ttl / 3
	before := cpuSince(ctx, redis, cpuTime{})
	seen := k.watch(ctx, length)
	used := cpuSince(ctx, redis, before)
	meanwhile := k.probeFor(ctx, length)
	renewing := notMeasured
	if s.peer.is.own { // what others renew can't be observed
		renewing = millis(total(seen.Spans)) / watched
		spans, _ := k.renewals.reset()
		_, meanwhile = split(meanwhile, spans)
	}
	perKey, perSecond := 1/float64(keys), 1/length.Seconds()
	cost := row{
		(more - bytes) * perKey, (moreGoroutines - goroutines) * perKey, float64(seen.Commands) * perSecond,
		1000 * used.client * perSecond, 1000 * used.redis * perSecond, renewing,
		quantiles(each(without), 0.99)[0], quantiles(each(meanwhile), 0.99)[0],
	}
	if s.peer.is.etcd { // its commands are not counted, and Redis has no part in it
		cost[2], cost[4] = notMeasured, notMeasured
	}
	check(out.Encode(cost))
	runtime.KeepAlive(leases) // the keys expire, or end with the server
	s.ends = nil              // which would give the keys back one by one
}

// inUse returns the heap in use and the number of goroutines.
func inUse() (bytes, goroutines float64) {
	for range 3 { // pools and finalizers release their last objects in later rounds
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc), float64(runtime.NumGoroutine())
}

// A holding is the keys, seen from inside the process that holds them.
type holding struct {
	lock     locker
	key      string
	meter    meter
	renewals renewals // none of other peers
}

// holding opens a client whose commands are counted, and of asynclock one whose renewals are watched.
func (s *stage) holding() *holding {
	k := &holding{key: s.key + ":"}
	s.dial = k.meter.dial
	if s.peer.is.own {
		redis := openStore(s.world)
		k.renewals.Store = redis
		c := clientOver(&k.renewals, redis, asynclock.WithTTL(s.ttl))
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

// An upkeep is the work of the client in a time in which its keys were held and it had no other
// requests.
type upkeep struct {
	Spans    []span // in which renewals were under way
	Keys     int    // the number of renewed keys
	Commands int    // of all kinds; each inbox also proves itself every 5 to 10 s
}

// watch observes the client for the given time.
func (k *holding) watch(ctx context.Context, length time.Duration) (seen upkeep) {
	commands := k.meter.commands()
	k.renewals.reset()
	select {
	case <-time.After(length):
	case <-ctx.Done():
		check(ctx.Err())
	}
	seen.Spans, seen.Keys = k.renewals.reset()
	seen.Commands = k.meter.commands() - commands
	return seen
}

// probeFor locks and unlocks one more key over and over for the given time.
func (k *holding) probeFor(ctx context.Context, length time.Duration) (locks []span) {
	lasting := ctx
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	tick := time.NewTicker(400 * time.Microsecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return locks
		case <-tick.C:
		}
		begin := time.Now()
		check(must(k.lock(lasting, k.key+"probe")).Unlock(lasting))
		locks = append(locks, span{begin, time.Now()})
	}
}

// each returns times of locks in µs.
func each(locks []span) (times []float64) {
	for _, l := range locks {
		times = append(times, micros(l.End.Sub(l.Begin)))
	}
	return times
}

// split divides locks into those without and with a renewal under way meanwhile.
func split(locks, renewals []span) (between, meanwhile []span) {
	for _, l := range locks {
		i, _ := slices.BinarySearchFunc(renewals, l.Begin, func(r span, t time.Time) int { return r.End.Compare(t) })
		if i < len(renewals) && !renewals[i].Begin.After(l.End) {
			meanwhile = append(meanwhile, l)
		} else {
			between = append(between, l)
		}
	}
	return between, meanwhile
}

// A span is the time of an activity.
type span struct{ Begin, End time.Time }

// total returns the sum of the spans' lengths.
func total(spans []span) (sum time.Duration) {
	for _, s := range spans {
		sum += s.End.Sub(s.Begin)
	}
	return sum
}

// renewals records when a client's renewals are under way. It stands between the client and its
// store.
type renewals struct {
	store.Store

	mu    sync.Mutex
	spans []span
	keys  int // renewed
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
	begin := time.Now()
	replies := s.Session.Renew(ctx, batch)
	r := s.renewals
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spans = append(r.spans, span{begin, time.Now()})
	for i := range replies {
		if replies[i].Err == nil {
			r.keys++
		}
	}
	return replies
}

// reset returns when renewals were under way, in order and disjoint, and for how many keys. It counts anew.
func (r *renewals) reset() (merged []span, keys int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortFunc(r.spans, func(a, b span) int { return a.Begin.Compare(b.Begin) })
	for _, s := range r.spans {
		if last := len(merged) - 1; last >= 0 && !s.Begin.After(merged[last].End) {
			merged[last].End = slices.MaxFunc([]time.Time{merged[last].End, s.End}, time.Time.Compare)
		} else {
			merged = append(merged, s)
		}
	}
	keys = r.keys
	r.spans, r.keys = nil, 0
	return merged, keys
}
