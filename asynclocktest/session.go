// SPDX-License-Identifier: Apache-2.0

package asynclocktest

import (
	"context"
	"iter"
	"sync"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
)

// A session is one client's bad connection.
type session struct {
	store  *Store
	inner  store.Session
	client int
	events func(store.Event)
}

var _ store.SpellingSession = (*session)(nil)

func (c *session) onEvent(e store.Event) {
	if e.Kind == store.EventGrant {
		c.store.granted(e.Owner, &e.Grant)
	}
	if fault := c.store.arriveEvent(Event{Event: e, Client: c.client}); fault != nil {
		fault(func() { c.events(e) })
		return
	}
	c.events(e)
}

func (c *session) Lane(key string) int { return c.inner.Lane(key) }

// Spell returns the key as it is if the inner store tells all keys from each other.
func (c *session) Spell(key string) string {
	if inner, ok := c.inner.(store.SpellingSession); ok {
		return inner.Spell(key)
	}
	return key
}

func (c *session) Acquire(ctx context.Context, batch []store.AcquireRequest) []store.AcquireReply {
	for _, r := range batch {
		c.store.asked(r)
	}
	return serve(ctx, c, batch, c.acquire,
		func(r store.AcquireRequest) Call {
			return Call{Op: Acquire, Key: r.Key, Owner: r.Owner, Acquire: r}
		},
		func(err error) store.AcquireReply { return store.AcquireReply{Err: err} })
}

// acquire passes requests to the store. It records grants here, because no fault has lost the reply
// yet.
func (c *session) acquire(ctx context.Context, batch []store.AcquireRequest) []store.AcquireReply {
	replies := c.inner.Acquire(ctx, batch)
	for i, r := range batch {
		c.granted(r, &replies[i])
	}
	return replies
}

// granted records a reply that is a grant.
func (c *session) granted(request store.AcquireRequest, reply *store.AcquireReply) {
	if reply.Status == store.Granted {
		c.store.granted(request.Owner, &reply.Grant)
	}
}

func (c *session) Renew(ctx context.Context, batch []store.RenewRequest) []store.RenewReply {
	return serve(ctx, c, batch, c.inner.Renew,
		func(r store.RenewRequest) Call { return Call{Op: Renew, Key: r.Key, Owner: r.Owner, Renew: r} },
		func(err error) store.RenewReply { return store.RenewReply{Err: err} })
}

func (c *session) Release(ctx context.Context, batch []store.ReleaseRequest) []store.ReleaseReply {
	for _, r := range batch {
		if r.Requeue != nil {
			c.store.asked(*r.Requeue)
		}
	}
	return serve(ctx, c, batch, c.release,
		func(r store.ReleaseRequest) Call {
			return Call{Op: Release, Key: r.Key, Owner: r.Owner, Release: r}
		},
		func(err error) store.ReleaseReply { return store.ReleaseReply{Err: err} })
}

// release is acquire for releases, which may request the key again.
func (c *session) release(ctx context.Context, batch []store.ReleaseRequest) []store.ReleaseReply {
	replies := c.inner.Release(ctx, batch)
	for i, r := range batch {
		if reply := replies[i].Requeue; reply != nil {
			c.granted(*r.Requeue, reply)
		}
	}
	return replies
}

func (c *session) Inspect(ctx context.Context, key string) (asynclock.Info, error) {
	return single(ctx, c, Call{Op: Inspect, Key: key}, func(ctx context.Context) (asynclock.Info, error) {
		return c.inner.Inspect(ctx, key)
	})
}

// List applies its fault before it begins.
func (c *session) List(ctx context.Context, prefix string) iter.Seq2[asynclock.Info, error] {
	return func(yield func(asynclock.Info, error) bool) {
		_, err := single(ctx, c, Call{Op: List, Key: prefix}, func(context.Context) (struct{}, error) {
			return struct{}{}, nil
		})
		if err != nil {
			yield(asynclock.Info{}, err)
			return
		}
		c.inner.List(ctx, prefix)(yield)
	}
}

func (c *session) Force(ctx context.Context, key string, token int64) (bool, error) {
	return single(ctx, c, Call{Op: Force, Key: key}, func(ctx context.Context) (bool, error) {
		return c.inner.Force(ctx, key, token)
	})
}

func (c *session) Close(ctx context.Context) error {
	_, err := single(ctx, c, Call{Op: Close}, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, c.inner.Close(ctx)
	})
	return err
}

// serve passes a batch on: requests without a fault together, the others one by one.
func serve[Q, R any](
	ctx context.Context, c *session, batch []Q, do func(context.Context, []Q) []R, describe func(Q) Call, failed func(error) R,
) []R {
	replies := make([]R, len(batch))
	var clear []Q
	var places []int
	var spoiled sync.WaitGroup
	for i, request := range batch {
		call := describe(request)
		call.Client = c.client
		fault := c.store.arrive(call)
		if fault == nil {
			clear, places = append(clear, request), append(places, i)
			continue
		}
		spoiled.Go(func() {
			replies[i] = spoil(ctx, fault, failed, func(ctx context.Context) R { return do(ctx, []Q{request})[0] })
		})
	}
	if len(clear) > 0 {
		for i, reply := range do(ctx, clear) {
			replies[places[i]] = reply
		}
	}
	spoiled.Wait()
	return replies
}

// single passes on a request that has no batch.
func single[R any](ctx context.Context, c *session, call Call, do func(context.Context) (R, error)) (R, error) {
	type answer struct {
		reply R
		err   error
	}
	call.Client = c.client
	fault := c.store.arrive(call)
	if fault == nil {
		return do(ctx)
	}
	a := spoil(ctx, fault, func(err error) answer { return answer{err: err} }, func(ctx context.Context) (a answer) {
		a.reply, a.err = do(ctx)
		return a
	})
	return a.reply, a.err
}

// spoil applies a fault to one request.
func spoil[R any](ctx context.Context, fault Fault, failed func(error) R, do func(context.Context) R) R {
	var mu sync.Mutex
	reply := failed(asynclock.ErrOutcomeUnknown) // before the first carry
	err := fault(ctx, func() {
		r := do(context.WithoutCancel(ctx))
		mu.Lock()
		defer mu.Unlock()
		reply = r
	})
	if err != nil {
		return failed(err)
	}
	mu.Lock()
	defer mu.Unlock()
	return reply
}
