// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/store"
)

// readMore is one more reader where another of the client reads already.
func readMore(size sizes) prepare {
	return func(_ context.Context, s *stage) round {
		if s.peer.name == rwMutexName {
			var m sync.RWMutex
			m.RLock() // for good: the other reader
			return func(context.Context) []float64 {
				return rate(size.window, 1, func() {
					m.RLock()
					m.RUnlock() //nolint:staticcheck // an empty section is what is measured
				})
			}
		}
		lock := s.client().worker()
		return func(ctx context.Context) []float64 {
			other := must(lock(ctx, s.key)) // anew in each round: a tenure from before the client's subscription would admit nobody
			values := rate(size.window, 1, func() { lock.pair(ctx, s.key) })
			check(other.Unlock(ctx))
			return values
		}
	}
}

// readMoreInJava is the same there. A thread of Java's that has the lock already would only count, so
// the other reader is another client.
func readMoreInJava(size sizes) prepare {
	return func(ctx context.Context, s *stage) round {
		s.javaPeer(ctx).ask(ctx, "hold", 1)
		return javaCrowd(ctx, s, size, 1)
	}
}

// javaCrowd is the rate of so many threads.
func javaCrowd(ctx context.Context, s *stage, size sizes, threads int) round {
	p := s.javaPeer(ctx)
	p.ask(ctx, "alone", size.warm)
	return func(ctx context.Context) []float64 {
		return p.ask(ctx, "crowd", threads, int(size.window.Milliseconds()))
	}
}

// readings are how often all readers wait for a writer in a round.
const readings = 5

// readTogether is all readers that waited for a writer.
func readTogether(size sizes) prepare {
	return func(_ context.Context, s *stage) round {
		readers, writer := s.workers(size.readers, 1), s.asynclock()
		return func(ctx context.Context) []float64 {
			var times []float64
			for range readings {
				held := must(writer.Lock(ctx, s.key))
				var reading sync.WaitGroup
				reading.Add(len(readers))
				wait := beside(func() {
					together(len(readers), func(i int) {
						h, err := readers[i](ctx, s.key)
						reading.Done()
						check(err)
						reading.Wait() // all stay until the last one reads
						check(h.Unlock(ctx))
					})
				})
				until(ctx, func() bool { return must(writer.Inspect(ctx, s.key)).Waiters == len(readers) })
				time.Sleep(rest)
				start := time.Now()
				check(held.Unlock(ctx))
				reading.Wait()
				times = append(times, micros(time.Since(start)))
				wait()
			}
			return inMillis(times)
		}
	}
}

func readTogetherInJava(size sizes) prepare {
	const settle = 200 // ms, until all of them wait
	return func(ctx context.Context, s *stage) round {
		p := s.javaPeer(ctx)
		p.ask(ctx, "readers", size.readers, max(size.warm/size.readers, 1), settle)
		return func(ctx context.Context) []float64 {
			return inMillis(p.ask(ctx, "readers", size.readers, readings, settle))
		}
	}
}

// A session is one in the store, without a client above it.
type session struct{ store.Session }

func (s *stage) session() session {
	redis := openStore(s.world)
	one := must(redis.Open(rand.Text(), func(store.Event) {})) // nobody waits
	s.after(func(ctx context.Context) error {
		defer redis.Close()
		return one.Close(ctx)
	})
	return session{one}
}

// shared is the share of a reader.
var shared = store.Share{Mode: store.Shared}

// take takes a key that is free for a new owner, and returns the request that renews it.
func (s session) take(ctx context.Context, key string, share store.Share) store.RenewRequest {
	owner := rand.Text()
	reply := s.Acquire(ctx, []store.AcquireRequest{{
		Key: key, Owner: owner, TTL: usualTTL, GrantTTL: usualTTL, WaiterTTL: usualTTL,
		NotifyQueued: true, Share: share, Description: "bench",
	}})[0]
	check(reply.Err)
	if reply.Status != store.Granted {
		check(fmt.Errorf("%s is not free: status %d", key, reply.Status))
	}
	return store.RenewRequest{Key: key, Owner: owner, TTL: usualTTL, Token: reply.Token, Description: "bench", Share: share}
}

func (s session) renew(ctx context.Context, requests []store.RenewRequest) {
	for _, reply := range s.Renew(ctx, requests) {
		check(reply.Err)
	}
}

// release gives a key back that was taken.
func (s session) release(ctx context.Context, r store.RenewRequest) {
	check(s.Release(ctx, []store.ReleaseRequest{{Key: r.Key, Owner: r.Owner, Token: r.Token, Clean: true}})[0].Err)
}

const (
	released = 50 // readers that leave in a round
	few      = 2  // readers that many of them are compared to

	renewedShares = 64 // as many as the client puts in one call
	renewedAlone  = "asynclock, readers alone"
)

// readers of a key are counted from 0. They come and leave by their numbers.
type readers struct {
	take, give func(ctx context.Context, from, to int)
}

// releases is what it costs the server that one of a few readers leaves, or one of many.
func releases(size sizes, of func(ctx context.Context, s *stage, beside int) readers) prepare {
	return func(ctx context.Context, s *stage) round {
		redis := s.meterless()
		least, most := of(ctx, s, few), of(ctx, s, size.many)
		return func(ctx context.Context) []float64 {
			a, b := least.releaseTime(ctx, redis, few), most.releaseTime(ctx, redis, size.many)
			return []float64{b / a, a, b}
		}
	}
}

// releaseTime has readers come, some more of them come and leave, and the others leave. Where a
// renewal came in between, it is tried again.
func (r readers) releaseTime(ctx context.Context, redis rueidis.Client, beside int) (micros float64) {
	r.take(ctx, 0, beside)
	var used scriptTime
	const tries = 5
	for try := 0; try < tries && used.calls != released; try++ {
		r.take(ctx, beside, beside+released)
		before := scriptsSince(ctx, redis, scriptTime{})
		r.give(ctx, beside, beside+released)
		used = scriptsSince(ctx, redis, before)
	}
	if used.calls != released {
		check(fmt.Errorf("%d readers left by %v calls of scripts, in each of %d tries", released, used.calls, tries))
	}
	r.give(ctx, 0, beside)
	return used.micros / released
}

// ownReaders are readers that are owners of their own.
func ownReaders(_ context.Context, s *stage, beside int) readers {
	one, key, taken := s.session(), s.key+strconv.Itoa(beside), make(map[int]store.RenewRequest)
	return readers{
		take: func(ctx context.Context, from, to int) {
			for n := from; n < to; n++ {
				taken[n] = one.take(ctx, key, shared)
			}
		},
		give: func(ctx context.Context, from, to int) {
			for n := from; n < to; n++ {
				one.release(ctx, taken[n])
			}
		},
	}
}

func javaReaders(ctx context.Context, s *stage, beside int) readers {
	p := s.javaBeside(ctx, s.redis, strconv.Itoa(beside))
	return readers{
		take: func(ctx context.Context, from, to int) { p.ask(ctx, "read", from, to) },
		give: func(ctx context.Context, from, to int) { p.ask(ctx, "endread", from, to) },
	}
}

// readRenewal is what renewals of readers cost the server: of keys that are held in the store and renewed
// in one call.
func readRenewal(size sizes) prepare {
	return func(ctx context.Context, s *stage) round {
		share := shared
		if s.peer.name == mutexName {
			share = store.Share{}
		}
		redis, own, other := s.meterless(), s.session(), s.session()
		var requests, others []store.RenewRequest
		for _, key := range numbered(s.key, renewedShares) {
			requests = append(requests, own.take(ctx, key, share))
			if s.peer.name == asynclockPeer.name {
				others = append(others, other.take(ctx, key, share))
			}
		}
		return func(ctx context.Context) []float64 {
			if len(others) > 0 {
				other.renew(ctx, others)
			}
			before := scriptsSince(ctx, redis, scriptTime{})
			times := timed(size.passes, func(int) { own.renew(ctx, requests) })
			used := scriptsSince(ctx, redis, before)
			return []float64{used.micros / float64(size.passes*renewedShares), quantiles(times, 0.5)[0]}
		}
	}
}
