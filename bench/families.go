// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// The names of peers that tables treat differently.
const (
	mutexName    = "mutex"
	rwMutexName  = "sync.RWMutex"     // the floor inside a process
	localName    = "x/sync/semaphore" // that of permits
	redissonName = "Redisson"
)

// permitsOf is how many permits each semaphore has. Java's Recipes.PERMITS is the same.
const permitsOf = 10

var (
	aloneMetrics = append(slices.Clone(latencies), metric{Name: "server", Unit: "µs"})
	rates        = []metric{{"rate", "a second", true}}
)

// These are the peers of several workloads.
var (
	ourMutex = ours(mutexName, "asynclock: Lock, no options", func(ctx context.Context, c *asynclock.Client, key string) (held, error) {
		return lease(c.Lock(ctx, key))
	})
	ourReader = ours(asynclockPeer.name, "asynclock: RLock, no options", func(ctx context.Context, c *asynclock.Client, key string) (held, error) {
		return lease(c.RLock(ctx, key))
	})
	ourRetainedReader = ours(asynclockPeer.name, "asynclock: RLock, WithRetention of a minute", func(ctx context.Context, c *asynclock.Client, key string) (held, error) {
		return lease(c.RLock(ctx, key, asynclock.WithRetention(time.Minute)))
	})
	ourPermit = ours(asynclockPeer.name, fmt.Sprintf("asynclock: Semaphore of %d, Acquire of one, no options", permitsOf), func(ctx context.Context, c *asynclock.Client, key string) (held, error) {
		s, err := c.Semaphore(key, permitsOf)
		if err != nil {
			return nil, err
		}
		return lease(s.Acquire(ctx, 1))
	})
	localPermit = peer{name: localName, setting: "golang.org/x/sync/semaphore, without a store", is: traits{own: true}}

	redissonReader = inRedisson(redissonName, "read", "Redisson: RReadWriteLock, readLock")
	curatorReader  = inCurator("read", "Curator: InterProcessReadWriteLock, readLock")
	theirPermits   = []peer{
		inRedisson(redissonName, "semaphore", "Redisson: RSemaphore, whose permits never expire"),
		inRedisson("Redisson, expirable", "permits", "Redisson: RPermitExpirableSemaphore, for ten minutes and not renewed"),
		inCurator("semaphore", "Curator: InterProcessSemaphoreV2"),
	}
)

// inRedisson and inCurator are peers in Java.
func inRedisson(name, recipe, setting string) peer {
	return peer{name: name, setting: setting, recipe: "redisson " + recipe, needs: "redisson"}
}

func inCurator(recipe, setting string) peer {
	return peer{name: "Curator", setting: setting, recipe: "curator " + recipe, needs: "curator"}
}

// plain is a peer that the workload itself knows how to measure.
func plain(name, setting string) peer {
	return peer{name: name, setting: setting, is: traits{own: true}}
}

// and says more about how a peer is set up.
func (p peer) and(setting string) peer {
	p.setting += setting
	return p
}

// families are the workloads of the other families of locks, and what they must show.
func families(size sizes) (all []workload) {
	all = slices.Concat(readerFamily(size), permitFamily(size), severalFamily(size), electionFamily(size), quorumFamily(size))
	for i := range all {
		all[i].rounds, all[i].limit = size.rounds, time.Minute
	}
	return all
}

func readerFamily(size sizes) []workload {
	const beside = "; the other reader is another client"
	return []workload{{
		name: "read alone", title: "RLock and Unlock, one goroutine, nobody else", metrics: aloneMetrics, base: mutexName,
		peers:   []peer{floorPeer, ourMutex, ourReader, redissonReader, curatorReader},
		targets: []target{{of: mutexName, limit: 1.1}},
		prepare: serverTime(size, alone(size, sameKey)), inJava: serverTime(size, aloneInJava(size)),
	}, {
		name: "read more", title: "One more reader in a client that reads the key already: RLock and Unlock, one goroutine", metrics: rates, base: rwMutexName,
		peers:   []peer{plain(rwMutexName, "one more reader of it, without a store"), ourReader, redissonReader.and(beside), curatorReader.and(beside)},
		targets: []target{{limit: 1_000_000}},
		prepare: readMore(size), inJava: readMoreInJava(size),
	}, {
		name: "read again", title: "RLock and Unlock of a key that the client retains, one goroutine", metrics: rates,
		peers:   []peer{ourRetainedReader},
		targets: []target{{limit: 1_000_000}},
		absent:  "Redisson and Curator keep no key that was given back: it costs them what the first workload says",
		prepare: rateOfOne(size),
	}, {
		name: "read release", title: fmt.Sprintf("A reader leaves where %d or %d other readers stay: the server's time, by INFO commandstats", few, size.many),
		metrics: []metric{{Name: "many / few"}, {Name: "few", Unit: "µs"}, {Name: "many", Unit: "µs"}},
		peers: []peer{
			plain(asynclockPeer.name, "each reader is an owner of its own in the store, as those of different clients are"),
			redissonReader.and("; readers are told apart by the ids of threads"),
		},
		targets: []target{{limit: 1.5}},
		absent:  "ZooKeeper does not say what its time goes to",
		prepare: releases(size, ownReaders), inJava: releases(size, javaReaders),
	}, {
		name: "read together", title: fmt.Sprintf("From a writer's Unlock until all of %d clients read that waited for it", size.readers),
		metrics: []metric{{Name: "p50", Unit: "ms"}, {Name: "longest", Unit: "ms"}},
		peers:   []peer{ourReader, redissonReader, curatorReader},
		targets: []target{{limit: 5}},
		prepare: readTogether(size), inJava: readTogetherInJava(size),
	}, {
		name: "read renewal", title: fmt.Sprintf("Renewal of %d keys in one call", renewedShares),
		metrics: []metric{{Name: "server's time", Unit: "µs a key"}, {Name: "call, p50", Unit: "µs"}},
		base:    mutexName,
		peers: []peer{
			plain(mutexName, "each key locked by this client"),
			plain(asynclockPeer.name, "each key read by this client and another"),
			plain(renewedAlone, "each key read by this client only"),
		},
		targets: []target{{of: mutexName, limit: 1.3}},
		absent:  "Redisson renews by a timer of its own, which can't be told when; ZooKeeper has one session for all keys",
		prepare: readRenewal(size),
	}}
}

func permitFamily(size sizes) []workload {
	all := []workload{{
		name: "permit alone", title: "Acquire and Unlock of one permit, one goroutine, nobody else", metrics: aloneMetrics, base: mutexName,
		peers:   append([]peer{floorPeer, ourMutex, ourPermit}, theirPermits...),
		targets: []target{{of: mutexName, limit: 1.4}},
		prepare: serverTime(size, alone(size, sameKey)), inJava: serverTime(size, aloneInJava(size)),
	}}
	for _, clients := range []int{2, 8, 64} {
		all = append(all, workload{
			name:    fmt.Sprintf("permit handoff %d", clients),
			title:   fmt.Sprintf("Handoff of the one free permit of %d among %d clients, each of which holds it for a millisecond", permitsOf, clients),
			metrics: []metric{{Name: "p50", Unit: "µs"}, {Name: "p99", Unit: "µs"}, {Name: "commands", Unit: "per handoff"}},
			base:    mutexName,
			peers:   append([]peer{ourMutex, ourPermit}, theirPermits...),
			targets: []target{{of: mutexName, limit: 1.2}, {metric: 2, limit: 2.1}},
			prepare: circulation(size, clients), inJava: circulationInJava(size, clients),
		})
	}
	goals := []target{{limit: 400_000}, {of: localName, limit: 0.25}}
	return append(all, workload{
		name: "permit crowd", title: fmt.Sprintf("%d goroutines of one client, %d permits: Acquire and Unlock", permitCrowd, permitsOf), metrics: rates, base: localName,
		peers:   append([]peer{localPermit, ourPermit}, theirPermits...),
		targets: goals,
		prepare: permitsInCrowd(size, false), inJava: permitsInJava(size),
	}, workload{ // Unless a holder lets others run, a goroutine seldom finds that all permits are out.
		name: "permit queue", title: fmt.Sprintf("%d goroutines of one client, %d permits: Acquire, runtime.Gosched, Unlock", permitCrowd, permitsOf), metrics: rates, base: localName,
		peers:   []peer{localPermit, ourPermit},
		targets: goals,
		absent:  "the peers go to the server for each permit: see permit crowd",
		prepare: permitsInCrowd(size, true),
	})
}

func severalFamily(size sizes) (all []workload) {
	for _, keys := range []int{3, 10} {
		recipe := fmt.Sprintf("several %d", keys)
		all = append(all, workload{
			name: recipe, title: fmt.Sprintf("LockAll and Unlock of %d keys, one goroutine, nobody else", keys), metrics: aloneMetrics, base: mutexName,
			peers: []peer{
				ourMutex, oursAll(func(key string) []string { return numbered(key, keys) }),
				inRedisson(redissonName, recipe, "Redisson: RedissonMultiLock of RLocks"),
				inCurator(recipe, "Curator: InterProcessMultiLock of InterProcessMutexes"),
			},
			targets: []target{{of: mutexName, limit: 1.5}}, // it was set for 8 keys
			prepare: serverTime(size, alone(size, sameKey)), inJava: serverTime(size, aloneInJava(size)),
		})
	}
	return append(all, severalCrowd(size))
}

func electionFamily(size sizes) []workload {
	return []workload{{
		name: "election", title: "From Resign in one client to the term in another that is next", metrics: latencies,
		peers: []peer{
			plain(asynclockPeer.name, "elect.Campaign, no options"),
			{name: etcdName, setting: "etcd: concurrency.Election, a session per candidate, its data in memory", needs: etcdName},
			inCurator("selector", "Curator: LeaderSelector with autoRequeue"),
		},
		targets: []target{{of: bestPeer, limit: 1}},
		absent:  "Redisson has no election",
		prepare: terms(size), inJava: termsInJava(size),
	}, {
		name: "election observed", title: fmt.Sprintf("From Resign to the next leader on the channels of %d observing clients", size.observers),
		metrics: []metric{{Name: "p99", Unit: "ms"}, {Name: "p50", Unit: "ms"}},
		peers: []peer{
			plain(asynclockPeer.name, "elect.Observe, no options, a client each"),
			{name: etcdName, setting: "etcd: Election.Observe, a client each", needs: etcdName},
		},
		targets: []target{{limit: 2}},
		absent:  "Redisson has no election; Curator's LeaderSelector tells nobody, and has to be asked",
		prepare: observed(size),
	}}
}
