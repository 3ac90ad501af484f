// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// retryAfter is how often the polling peers repeat their requests. More frequent requests would
// give them more of a hot key's handoffs, until the server has time for nothing else; see the notes
// beside the results.
const retryAfter = time.Millisecond

// pool is how many connections go-redis may have. With two cores, more than its default of ten per
// core does not help.
const pool = 64

func newGoRedis(w world) *redis.Client {
	option := &redis.Options{Addr: w.redis, PoolSize: pool}
	if w.dial != nil {
		option.Dialer = func(ctx context.Context, _, address string) (net.Conn, error) { return w.dial(ctx, address) }
	}
	return redis.NewClient(option)
}

var redislockPeer = peer{
	name:    "redislock",
	setting: "go-redis with 64 connections; waiters ask again each millisecond; Lock.Refresh is the caller's business, so nothing is renewed",
	open: func(_ context.Context, w world) (client, error) {
		c := newGoRedis(w)
		return &redislockClient{c, redislock.New(c), &redislock.Options{RetryStrategy: redislock.LinearBackoff(retryAfter)}, w.ttl}, nil
	},
}

type redislockClient struct {
	redis   *redis.Client
	locks   *redislock.Client
	options *redislock.Options
	ttl     time.Duration
}

func (r *redislockClient) worker(context.Context) (worker, error) { return r, nil }

func (r *redislockClient) lock(ctx context.Context, key string) (held, error) {
	l, err := r.locks.Obtain(ctx, key, r.ttl, r.options)
	return redislockHeld{l}, err
}

func (r *redislockClient) close(context.Context) error { return r.redis.Close() }

type redislockHeld struct{ lock *redislock.Lock }

func (h redislockHeld) Unlock(ctx context.Context) error { return h.lock.Release(ctx) }

var redsyncPeer = peer{
	name:    "redsync",
	setting: "go-redis with 64 connections; waiters ask again each millisecond, any number of times; Mutex.Extend is the caller's business, so nothing is renewed",
	open: func(_ context.Context, w world) (client, error) {
		c := newGoRedis(w)
		return &redsyncClient{c, redsync.New(goredis.NewPool(c)), w.ttl}, nil
	},
}

type redsyncClient struct {
	redis *redis.Client
	sync  *redsync.Redsync
	ttl   time.Duration
}

func (r *redsyncClient) worker(context.Context) (worker, error) { return r, nil }

func (r *redsyncClient) lock(ctx context.Context, key string) (held, error) {
	m := r.sync.NewMutex(key, redsync.WithExpiry(r.ttl), redsync.WithTries(1<<30), redsync.WithRetryDelay(retryAfter))
	err := m.LockContext(ctx)
	return redsyncHeld{m}, err
}

func (r *redsyncClient) close(context.Context) error { return r.redis.Close() }

type redsyncHeld struct{ mutex *redsync.Mutex }

func (h redsyncHeld) Unlock(ctx context.Context) error {
	_, err := h.mutex.UnlockContext(ctx)
	return err
}
