// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

// A storeSession is a session in Redis, without a client above it.
type storeSession struct {
	store.Session

	store *redisstore.Store
}

func openSession(w world) (*storeSession, error) {
	s, err := openStore(w)
	if err != nil {
		return nil, err
	}
	session, err := s.Open(rand.Text(), func(store.Event) {}) // nobody waits
	return &storeSession{session, s}, err
}

func (s *storeSession) close(ctx context.Context) error {
	defer s.store.Close()
	return s.Close(ctx)
}

var reader = store.Share{Mode: store.Shared}

// request is what a client would send.
func request(key, owner string, share store.Share) store.AcquireRequest {
	return store.AcquireRequest{
		Key: key, Owner: owner, TTL: usualTTL, GrantTTL: usualTTL, WaiterTTL: usualTTL,
		NotifyQueued: true, Share: share, Description: "bench",
	}
}

func granted(key string, reply *store.AcquireReply) error {
	switch {
	case reply.Err != nil:
		return reply.Err
	case reply.Status != store.Granted:
		return fmt.Errorf("%s is not free: status %d", key, reply.Status)
	}
	return nil
}

// take takes a key that is free for it, and returns the request that renews it.
func (s *storeSession) take(ctx context.Context, r store.AcquireRequest) (store.RenewRequest, error) {
	reply := s.Acquire(ctx, []store.AcquireRequest{r})[0]
	return store.RenewRequest{
		Key: r.Key, Owner: r.Owner, TTL: r.TTL, Token: reply.Token, Description: r.Description, Share: r.Share,
	}, granted(r.Key, &reply)
}

func (s *storeSession) renew(ctx context.Context, requests []store.RenewRequest) error {
	if len(requests) == 0 {
		return nil
	}
	for _, reply := range s.Renew(ctx, requests) {
		if reply.Err != nil {
			return reply.Err
		}
	}
	return nil
}
