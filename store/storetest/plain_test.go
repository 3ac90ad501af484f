// SPDX-License-Identifier: Apache-2.0

package storetest_test

import (
	"context"
	"iter"
	"testing"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
	"github.com/asynclock/asynclock-go/store/storetest"
)

// TestSuiteAsksOnlyForFeatures runs the suite over a store that has exclusion
// and nothing more: no tokens, and waiters that contend.
func TestSuiteAsksOnlyForFeatures(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) store.Store { return plainStore{memstore.New()} }, storetest.InBubble())
}

type plainStore struct{ store.Store }

func (plainStore) Features() store.Features { return store.Features{} }

func (s plainStore) Open(id string, events func(store.Event)) (store.Session, error) {
	inner, err := s.Store.Open(id, events)
	return plainSession{wholeSession{inner}}, err
}

// A wholeSession refuses shares.
type wholeSession struct{ store.Session }

func (c wholeSession) Acquire(ctx context.Context, batch []store.AcquireRequest) []store.AcquireReply {
	for i := range batch {
		if err := (store.Features{}).Check(batch[i].Share, batch[i].Extra); err != nil {
			return []store.AcquireReply{{Err: err}} // the suite sends such a request by itself
		}
	}
	return c.Session.Acquire(ctx, batch)
}

func (c wholeSession) Release(ctx context.Context, batch []store.ReleaseRequest) []store.ReleaseReply {
	for i := range batch {
		if err := (store.Features{}).CheckRest(&batch[i]); err != nil {
			return []store.ReleaseReply{{Err: err}}
		}
	}
	return c.Session.Release(ctx, batch)
}

type plainSession struct{ store.Session }

// Acquire never queues: who waits is told so, and asks again.
func (c plainSession) Acquire(ctx context.Context, batch []store.AcquireRequest) []store.AcquireReply {
	tries := make([]store.AcquireRequest, len(batch))
	for i, r := range batch {
		tries[i] = r
		tries[i].Wait = false
	}
	replies := c.Session.Acquire(ctx, tries)
	for i, reply := range replies {
		if batch[i].Wait && reply.Status == store.Held {
			replies[i] = store.AcquireReply{Status: store.Waiting, Remaining: -1}
		}
		replies[i].Grant, replies[i].HolderToken = store.Grant{}, 0
	}
	return replies
}

func (c plainSession) Inspect(ctx context.Context, key string) (store.Info, error) {
	info, err := c.Session.Inspect(ctx, key)
	info.Token = 0
	return info, err
}

func (c plainSession) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		for info, err := range c.Session.List(ctx, prefix) {
			info.Token = 0
			if !yield(info, err) {
				return
			}
		}
	}
}

// TestSuiteKnowsStoresOfSessions runs the suite over a store that says of itself
// what one on a server of sessions is like.
func TestSuiteKnowsStoresOfSessions(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return sessionsStore{memstore.New()} }, storetest.InBubble())
}

type sessionsStore struct{ store.Store }

func (sessionsStore) Features() store.Features {
	return store.Features{Tokens: true, FIFO: true, Sessions: true}
}

func (s sessionsStore) Open(id string, events func(store.Event)) (store.Session, error) {
	inner, err := s.Store.Open(id, events)
	return sessionsSession{wholeSession{inner}}, err
}

type sessionsSession struct{ store.Session }

func (c sessionsSession) Acquire(ctx context.Context, batch []store.AcquireRequest) []store.AcquireReply {
	for i := range batch {
		if batch[i].Ticket != 0 { // nobody comes back to a place
			batch[i].Ticket, batch[i].QueueLimit = 0, 0
		}
	}
	replies := c.Session.Acquire(ctx, batch)
	for i := range replies {
		replies[i].Remaining = -1
	}
	return replies
}

func (c sessionsSession) Inspect(ctx context.Context, key string) (store.Info, error) {
	info, err := c.Session.Inspect(ctx, key)
	info.Remaining = -1
	return info, err
}

func (c sessionsSession) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		for info, err := range c.Session.List(ctx, prefix) {
			info.Remaining = -1
			if !yield(info, err) {
				return
			}
		}
	}
}
