// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	pool "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

var asynclockPeer = peer{
	name:    "asynclock",
	setting: "redisstore.Open and asynclock.New without options",
	open:    func(w world) *client { return openAsynclock(w) },
	is:      traits{own: true, renews: true},
}

// ours is asynclock, without options except those that the workload is about.
func ours(name, setting string, take func(ctx context.Context, c *asynclock.Client, key string) (held, error)) peer {
	return peer{name: name, setting: setting, is: traits{own: true}, open: func(w world) *client {
		c := openAsynclock(w)
		c.lock = func(ctx context.Context, key string) (held, error) { return take(ctx, c.locks, key) }
		return c
	}}
}

// openStore connects to Redis.
func openStore(w world) *redisstore.Store {
	var options []redisstore.Option
	if w.short {
		options = append(options, redisstore.WithoutFailoverGrace())
	}
	return must(redisstore.Open(rueidis.ClientOption{InitAddress: []string{w.redis}, DialCtxFn: w.rueidisDial()}, options...))
}

func openAsynclock(w world, options ...asynclock.ClientOption) *client {
	s := openStore(w)
	return clientOver(s, s, append(options, asynclock.WithTTL(w.ttl))...)
}

// clientOver returns a client of asynclock over a store that leads to Redis, and closes what leads there.
func clientOver(s store.Store, redis interface{ Close() }, options ...asynclock.ClientOption) *client {
	locks := must(asynclock.New(s, options...))
	return &client{
		locks: locks,
		lock:  func(ctx context.Context, key string) (held, error) { return lease(locks.Lock(ctx, key)) },
		close: func(ctx context.Context) error {
			defer redis.Close()
			return locks.Close(ctx)
		},
	}
}

// floorPeer sends what every lock must send: one command that takes the key if it is free, and one
// script that deletes it if it is still ours.
var floorPeer = peer{
	name:    "floor",
	setting: "rueidis, set up as asynclock sets it up: SET NX PX, then a compare-and-delete script by EVALSHA; nobody waits, nothing is renewed",
	open:    func(w world) *client { return openFloor(clientOption(w), w.ttl) },
	is:      traits{own: true, floor: true},
}

// lowestFloorPeer is the floor of a caller that is alone: rueidis then writes and reads in the
// caller's goroutine. With many callers it pipelines by itself.
var lowestFloorPeer = peer{
	name:    "lowest floor",
	setting: "the same, by rueidis as it is unless it is told to pipeline: a caller that is alone writes and reads by itself",
	open: func(w world) *client {
		option := clientOption(w)
		option.AlwaysPipelining, option.PipelineMultiplex = false, 0
		return openFloor(option, w.ttl)
	},
	is: traits{own: true, floor: true, lowest: true},
}

// clientOption returns the options with which redisstore.Open connects.
func clientOption(w world) rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress:       []string{w.redis},
		DialCtxFn:         w.rueidisDial(),
		DisableCache:      true,
		AlwaysPipelining:  true,
		PipelineMultiplex: -1,
	}
}

var (
	errTaken     = errors.New("the floor found its key taken")
	floorRelease = rueidis.NewLuaScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
)

func openFloor(option rueidis.ClientOption, ttl time.Duration) *client {
	c := must(rueidis.NewClient(option))
	var owners atomic.Int64
	return &client{
		lock: func(ctx context.Context, key string) (held, error) {
			owner := strconv.FormatInt(owners.Add(1), 10)
			err := c.Do(ctx, c.B().Set().Key(key).Value(owner).Nx().PxMilliseconds(ttl.Milliseconds()).Build()).Error()
			if rueidis.IsRedisNil(err) {
				err = errTaken
			}
			return unlocking(func(ctx context.Context) error {
				return floorRelease.Exec(ctx, c, []string{key}, []string{owner}).Error()
			}), err
		},
		close: closing(c),
	}
}

// closing is the end of a client of rueidis.
func closing(c interface{ Close() }) func(context.Context) error {
	return func(context.Context) error {
		c.Close()
		return nil
	}
}

// rueidislockPeer locks by a majority of 2n-1 keys. The library's default is 2, which is for
// clusters. With 1 it sends what the others send.
func rueidislockPeer(majority int32) peer {
	return peer{
		name: fmt.Sprintf("rueidislock/%d", majority),
		setting: fmt.Sprintf("KeyMajority %d, NoLoopTracking (its README recommends it; without it, a lock that is only held sends thousands of commands a second), "+
			"KeyValidity as all, ExtendInterval a third of that", majority),
		open: func(w world) *client {
			l := must(rueidislock.NewLocker(rueidislock.LockerOption{
				ClientOption:   rueidis.ClientOption{InitAddress: []string{w.redis}, DialCtxFn: w.rueidisDial()},
				KeyMajority:    majority,
				NoLoopTracking: true,
				KeyValidity:    w.ttl,
				ExtendInterval: w.ttl / 3,
			}))
			return &client{close: closing(l), lock: func(ctx context.Context, key string) (held, error) {
				_, cancel, err := l.WithContext(ctx, key)
				return unlocking(func(context.Context) error {
					cancel() // returns when the key is deleted
					return nil
				}), err
			}}
		},
		is: traits{renews: true, holds: 100_000 / int(majority*majority*majority)},
	}
}

// retryAfter is how often the polling peers repeat their requests. More frequent requests would
// give them more of a hot key's handoffs, until the server has time for nothing else; see the notes
// beside the results.
const retryAfter = time.Millisecond

// newGoRedis connects with 64 connections. With two cores, more than go-redis' default of ten per
// core does not help.
func newGoRedis(w world) *redis.Client {
	option := &redis.Options{Addr: w.redis, PoolSize: 64}
	if w.dial != nil {
		option.Dialer = func(ctx context.Context, _, address string) (net.Conn, error) { return w.dial(ctx, address) }
	}
	return redis.NewClient(option)
}

var redislockPeer = peer{
	name:    "redislock",
	setting: "go-redis with 64 connections; waiters ask again each millisecond; Lock.Refresh is the caller's business, so nothing is renewed",
	open: func(w world) *client {
		c := newGoRedis(w)
		locks, options := redislock.New(c), &redislock.Options{RetryStrategy: redislock.LinearBackoff(retryAfter)}
		return &client{close: func(context.Context) error { return c.Close() }, lock: func(ctx context.Context, key string) (held, error) {
			l, err := locks.Obtain(ctx, key, w.ttl, options)
			return unlocking(l.Release), err
		}}
	},
}

var redsyncPeer = peer{
	name:    "redsync",
	setting: "go-redis with 64 connections; waiters ask again each millisecond, any number of times; Mutex.Extend is the caller's business, so nothing is renewed",
	open:    func(w world) *client { return openRedsync(w, []string{w.redis}) },
}

// openRedsync locks on a majority of servers, or on one.
func openRedsync(w world, servers []string, more ...redsync.Option) *client {
	var pools []pool.Pool
	var all ends
	for _, address := range servers {
		c := newGoRedis(w.at(address))
		all.after(func(context.Context) error { return c.Close() })
		pools = append(pools, goredis.NewPool(c))
	}
	locks := redsync.New(pools...)
	options := append([]redsync.Option{redsync.WithExpiry(w.ttl), redsync.WithTries(1 << 30), redsync.WithRetryDelay(retryAfter)}, more...)
	return &client{close: all.close, lock: func(ctx context.Context, key string) (held, error) {
		m := locks.NewMutex(key, options...)
		err := m.LockContext(ctx)
		return unlocking(func(ctx context.Context) error {
			_, err := m.UnlockContext(ctx)
			return err
		}), err
	}}
}

const etcdName = "etcd"

var etcdPeer = peer{
	name:    etcdName,
	setting: "one etcd server with its data in memory (/dev/shm), since Redis writes nothing to disk either; concurrency.Mutex, a session per goroutine, made before",
	open: func(w world) *client {
		e := new(etcdClient).dial(w)
		return &client{close: e.close, fork: func() locker {
			s := e.session()
			return func(ctx context.Context, key string) (held, error) {
				m := concurrency.NewMutex(s, "/"+key)
				return m, m.Lock(ctx)
			}
		}}
	},
	needs: etcdName,
	is:    traits{renews: true, etcd: true, holds: 10_000, settles: 120 * time.Millisecond},
}

// An etcdClient has sessions, which end with it.
type etcdClient struct {
	*clientv3.Client
	ends

	ttl time.Duration
}

func (e *etcdClient) dial(w world) *etcdClient {
	e.ttl = w.ttl
	e.Client = must(clientv3.New(clientv3.Config{Endpoints: []string{w.etcd}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()}))
	e.after(func(context.Context) error { return e.Close() })
	return e
}

func (e *etcdClient) session() *concurrency.Session {
	s := must(concurrency.NewSession(e.Client, concurrency.WithTTL(int(e.ttl/time.Second))))
	e.after(func(context.Context) error { return s.Close() })
	return s
}
