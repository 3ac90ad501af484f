// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

var asynclockPeer = peer{
	name:    "asynclock",
	setting: "redisstore.Open and asynclock.New without options",
	open: func(ctx context.Context, w world) (client, error) {
		a, err := openAsynclock(w)
		if err != nil {
			return nil, err
		}
		return a, a.settle(ctx)
	},
	is: traits{renews: true},
}

type asynclockClient struct {
	store *redisstore.Store
	locks *asynclock.Client
}

// openStore connects to Redis.
func openStore(w world) (*redisstore.Store, error) {
	var options []redisstore.Option
	if w.short {
		options = append(options, redisstore.WithoutFailoverGrace())
	}
	return redisstore.Open(rueidis.ClientOption{InitAddress: []string{w.redis}, DialCtxFn: w.rueidisDial()}, options...)
}

// openAsynclock opens a client of its own.
func openAsynclock(w world, options ...asynclock.ClientOption) (*asynclockClient, error) {
	store, err := openStore(w)
	if err != nil {
		return nil, err
	}
	locks, err := asynclock.New(store, append(options, asynclock.WithTTL(w.ttl))...)
	if err != nil {
		store.Close()
		return nil, err
	}
	return &asynclockClient{store, locks}, nil
}

// settle waits until a server that was just started grants keys. A round would otherwise be cut short
// then, and those who gave up waiting would be remembered for two minutes, at a price for others.
func (a *asynclockClient) settle(ctx context.Context) error {
	return a.locks.WithLock(ctx, "bench:settled", func(context.Context, *asynclock.Lease) error { return nil })
}

func (a *asynclockClient) worker(context.Context) (worker, error) { return a, nil }

func (a *asynclockClient) lock(ctx context.Context, key string) (held, error) {
	l, err := a.locks.Lock(ctx, key)
	if err != nil {
		return nil, err // not a nil *Lease in an interface
	}
	return l, nil
}

func (a *asynclockClient) close(ctx context.Context) error {
	defer a.store.Close()
	return a.locks.Close(ctx)
}
