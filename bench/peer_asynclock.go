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
	open: func(_ context.Context, w world) (client, error) {
		return openAsynclock(w)
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
