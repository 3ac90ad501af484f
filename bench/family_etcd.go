// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

// etcdCandidates campaign by etcd's elections. A term's number is its value.
type etcdCandidates struct {
	clients   [2]*clientv3.Client
	sessions  [2]*concurrency.Session
	elections [2]*concurrency.Election
	last      atomic.Int64
}

func dialEtcd(a arena) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{a.etcd}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
}

func newEtcdCandidates(a arena, key string) (*etcdCandidates, error) {
	e := new(etcdCandidates)
	for i := range e.clients {
		var err error
		if e.clients[i], err = dialEtcd(a); err != nil {
			return nil, err
		}
		if e.sessions[i], err = concurrency.NewSession(e.clients[i], concurrency.WithTTL(int(a.ttl/time.Second))); err != nil {
			return nil, err
		}
		e.elections[i] = concurrency.NewElection(e.sessions[i], "/"+key)
	}
	return e, nil
}

func (e *etcdCandidates) lead(ctx context.Context, candidate int) (time.Time, int64, error) {
	term := e.last.Add(1)
	err := e.elections[candidate].Campaign(ctx, strconv.FormatInt(term, 10))
	return time.Now(), term, err
}

// waits can't be seen, and etcd notifies a waiter at once only after a tenth of a second.
func (e *etcdCandidates) waits(context.Context, int) error {
	time.Sleep(etcdPeer.is.settles)
	return nil
}

func (e *etcdCandidates) resign(ctx context.Context, candidate int) error {
	return e.elections[candidate].Resign(ctx)
}

func (e *etcdCandidates) close(context.Context) error {
	var errs []error
	for i := range e.clients {
		errs = append(errs, e.sessions[i].Close(), e.clients[i].Close())
	}
	return errors.Join(errs...)
}

// etcdObservers are clients of etcd.
type etcdObservers struct {
	clients  []*clientv3.Client
	sessions []*concurrency.Session
}

func (e *etcdObservers) observe(ctx context.Context, a arena, key string, see func(term int64)) error {
	c, err := dialEtcd(a)
	if err != nil {
		return err
	}
	e.clients = append(e.clients, c)
	s, err := concurrency.NewSession(c, concurrency.WithTTL(int(a.ttl/time.Second)))
	if err != nil {
		return err
	}
	e.sessions = append(e.sessions, s)
	seen := concurrency.NewElection(s, "/"+key).Observe(ctx)
	go func() { // ends with ctx
		for r := range seen {
			for _, kv := range r.Kvs {
				if term, err := strconv.ParseInt(string(kv.Value), 10, 64); err == nil {
					see(term)
				}
			}
		}
	}()
	return nil
}

func (e *etcdObservers) close(context.Context) error {
	var errs []error
	for _, s := range e.sessions {
		errs = append(errs, s.Close())
	}
	for _, c := range e.clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
