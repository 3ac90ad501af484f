// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

var etcdPeer = peer{
	name:    "etcd",
	setting: "one etcd server with its data in memory (/dev/shm), since Redis writes nothing to disk either; concurrency.Mutex, a session per goroutine, made before",
	open: func(_ context.Context, w world) (client, error) {
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{w.etcd}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
		return &etcdClient{client: c, ttl: w.ttl}, err
	},
	is: traits{renews: true, etcd: true, holds: 10_000, settles: 120 * time.Millisecond},
}

type etcdClient struct {
	client   *clientv3.Client
	ttl      time.Duration
	mu       sync.Mutex
	sessions []*concurrency.Session
}

func (e *etcdClient) worker(context.Context) (worker, error) {
	s, err := concurrency.NewSession(e.client, concurrency.WithTTL(int(e.ttl/time.Second)))
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sessions = append(e.sessions, s)
	return etcdWorker{s}, nil
}

func (e *etcdClient) close(context.Context) error {
	for _, s := range e.sessions {
		if err := s.Close(); err != nil {
			return err
		}
	}
	return e.client.Close()
}

type etcdWorker struct{ session *concurrency.Session }

func (e etcdWorker) lock(ctx context.Context, key string) (held, error) {
	m := concurrency.NewMutex(e.session, "/"+key)
	return m, m.Lock(ctx)
}
