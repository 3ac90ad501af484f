// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/asynclock/asynclock-go/asynclock"
)

// It has no output, so it is compiled and not run: there is no etcd here.
func Example_etcd() {
	ctx := context.Background()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:2379"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	if err := etcdBefore(ctx, client); err != nil {
		fmt.Println(err)
	}
	session, err := concurrency.NewSession(client, concurrency.WithTTL(15))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	onRedis(func(ctx context.Context, _ string, locks *asynclock.Client) error {
		return etcdBoth(ctx, locks, session, func(ctx context.Context) error { return saveOrder(ctx, 42) })
	})
}

func Example_etcdAfter() {
	onRedis(func(ctx context.Context, _ string, locks *asynclock.Client) error { return etcdAfter(ctx, locks) })
	// Output:
	// saved order 42
}

func etcdBefore(ctx context.Context, client *clientv3.Client) error {
	session, err := concurrency.NewSession(client, concurrency.WithTTL(15)) // seconds
	if err != nil {
		return err
	}
	defer session.Close()
	mutex := concurrency.NewMutex(session, "/locks/order:42")
	if err := mutex.Lock(ctx); err != nil {
		return err
	}
	defer mutex.Unlock(ctx)
	return saveOrder(ctx, 42)
}

func etcdAfter(ctx context.Context, locks *asynclock.Client) error {
	return locks.WithLock(ctx, "order:42", func(ctx context.Context, lease *asynclock.Lease) error {
		return saveOrder(ctx, 42) // ctx ends if the lease is lost
	})
}

func etcdBoth(ctx context.Context, locks *asynclock.Client, session *concurrency.Session, save func(context.Context) error) error {
	return locks.WithLock(ctx, "order:42", func(ctx context.Context, _ *asynclock.Lease) error {
		mutex := concurrency.NewMutex(session, "/locks/order:42")
		if err := mutex.Lock(ctx); err != nil {
			return err
		}
		defer mutex.Unlock(context.WithoutCancel(ctx))
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(session.Ctx(), cancel)() // ctx ends with either lock
		return save(ctx)
	})
}
