// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// rueidislockPeer locks by a majority of 2n-1 keys. The library's default is 2, which is for
// clusters. With 1 it sends what the others send.
func rueidislockPeer(majority int32) peer {
	return peer{
		name: fmt.Sprintf("rueidislock/%d", majority),
		setting: fmt.Sprintf("KeyMajority %d, NoLoopTracking (its README recommends it; without it, a lock that is only held sends thousands of commands a second), "+
			"KeyValidity as all, ExtendInterval a third of that", majority),
		open: func(_ context.Context, w world) (client, error) {
			locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
				ClientOption:   rueidis.ClientOption{InitAddress: []string{w.redis}, DialCtxFn: w.rueidisDial()},
				KeyMajority:    majority,
				NoLoopTracking: true,
				KeyValidity:    w.ttl,
				ExtendInterval: w.ttl / 3,
			})
			return &rueidislockClient{locker}, err
		},
		is: traits{renews: true, holds: 100_000 / int(majority*majority*majority)},
	}
}

type rueidislockClient struct{ locker rueidislock.Locker }

func (r *rueidislockClient) worker(context.Context) (worker, error) { return r, nil }

func (r *rueidislockClient) lock(ctx context.Context, key string) (held, error) {
	_, cancel, err := r.locker.WithContext(ctx, key)
	return rueidislockHeld(cancel), err
}

func (r *rueidislockClient) close(context.Context) error {
	r.locker.Close()
	return nil
}

type rueidislockHeld context.CancelFunc

// Unlock calls the function that rueidislock returned, which returns when the key is deleted.
func (h rueidislockHeld) Unlock(context.Context) error {
	h()
	return nil
}
