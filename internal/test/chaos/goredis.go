// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/store/goredisstore"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

// openShared makes a client of go-redis and a store by its options, which connects when it is used.
func (w *worker) openShared(option rueidis.ClientOption) (*workersStore, error) {
	client := redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: option.InitAddress, MasterName: option.Sentinel.MasterSet,
		Dialer: func(ctx context.Context, _, address string) (net.Conn, error) {
			return w.dial(ctx, address, new(net.Dialer), nil)
		},
	})
	store, err := goredisstore.New(client, redisstore.WithPrefix(prefix), redisstore.WithFailoverGrace(graceOf(w.Store, w.TTLs)), redisstore.WithoutLogger())
	if err != nil {
		return nil, err
	}
	return &workersStore{store, func() {
		store.Close()
		_ = client.Close() // fails only if it is closed
	}}, nil
}
