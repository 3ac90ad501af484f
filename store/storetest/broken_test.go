// SPDX-License-Identifier: Apache-2.0

package storetest_test

import (
	"context"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A brokenStore is a memstore with a fault between it and its clients. All that the fault does not
// replace works.
type brokenStore struct {
	store.Store
	fault fault

	// For faults with a memory:
	calls atomic.Int64
	mu    sync.Mutex
	seen  map[string]store.AcquireReply
	all   []func(store.Event) // who has joined
}

// A fault breaks one rule. Its functions replace the session's own.
type fault struct {
	breaks string // the rule, in words
	caught string // the name of a case that has to fail

	features func(store.Features) store.Features // claims

	acquire func(*brokenSession, store.AcquireRequest) store.AcquireReply
	renew   func(*brokenSession, store.RenewRequest) store.RenewReply
	release func(*brokenSession, store.ReleaseRequest) store.ReleaseReply
	event   func(store.Event) (store.Event, bool)
	inspect func(store.Info) store.Info
	list    func(*brokenSession, string) iter.Seq2[store.Info, error]
	force   func(*brokenSession, string, int64) (bool, error)
	limit   func(*brokenSession, string, int32) error
	note    func(*brokenSession, store.NoteRequest) error
	noted   func(string, store.Note) store.Note
	observe func(*brokenSession, string, bool) error
	ended   func(*brokenSession, string, int64) error
	leave   func(*brokenSession) error
	context func(context.Context) context.Context
	batch   func(replies int) int // how many of the replies are answered
	short   string                // the call whose batches lack their last reply
}

func newBrokenStore(f fault) *brokenStore {
	return &brokenStore{Store: memstore.New(), fault: f, seen: make(map[string]store.AcquireReply)}
}

func (s *brokenStore) Features() store.Features {
	if s.fault.features != nil {
		return s.fault.features(s.Store.Features())
	}
	return s.Store.Features()
}

func (s *brokenStore) Open(id string, events func(store.Event)) (store.Session, error) {
	s.mu.Lock()
	s.all = append(s.all, events)
	s.mu.Unlock()
	inner, err := s.Store.Open(id, func(e store.Event) {
		if s.fault.event != nil {
			var ok bool
			if e, ok = s.fault.event(e); !ok {
				return
			}
		}
		events(e)
	})
	return &brokenSession{Session: inner, store: s}, err
}

type brokenSession struct {
	store.Session // the one that works
	store         *brokenStore
}

// tellAll sends an event to every client.
func (s *brokenStore) tellAll(e store.Event) {
	s.mu.Lock()
	all := slices.Clone(s.all)
	s.mu.Unlock()
	for _, events := range all {
		events(e)
	}
}

// acquired remembers the reply and returns what the owner was told first.
func (s *brokenStore) acquired(owner string, reply store.AcquireReply) (first store.AcquireReply, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first, again = s.seen[owner]
	if !again {
		s.seen[owner] = reply
	}
	return first, again
}

func (c *brokenSession) context(ctx context.Context) context.Context {
	if c.store.fault.context != nil {
		return c.store.fault.context(ctx)
	}
	return ctx
}

func each[Q, R any](c *brokenSession, batch []Q, one func(*brokenSession, Q) R) []R {
	replies := make([]R, len(batch))
	n := len(batch)
	if c.store.fault.batch != nil {
		n = c.store.fault.batch(n)
	}
	for i := range n {
		replies[i] = one(c, batch[i])
	}
	return replies
}

func short[R any](c *brokenSession, call string, replies []R) []R {
	if c.store.fault.short == call && len(replies) > 2 {
		return replies[:len(replies)-1]
	}
	return replies
}

func (c *brokenSession) Acquire(ctx context.Context, batch []store.AcquireRequest) []store.AcquireReply {
	ctx = c.context(ctx)
	one := c.store.fault.acquire
	if one == nil || ctx.Err() != nil {
		one = func(c *brokenSession, r store.AcquireRequest) store.AcquireReply {
			return c.Session.Acquire(ctx, []store.AcquireRequest{r})[0]
		}
	}
	return short(c, "Acquire", each(c, batch, one))
}

func (c *brokenSession) Renew(ctx context.Context, batch []store.RenewRequest) []store.RenewReply {
	ctx = c.context(ctx)
	one := c.store.fault.renew
	if one == nil || ctx.Err() != nil {
		one = func(c *brokenSession, r store.RenewRequest) store.RenewReply {
			return c.Session.Renew(ctx, []store.RenewRequest{r})[0]
		}
	}
	return short(c, "Renew", each(c, batch, one))
}

func (c *brokenSession) Release(ctx context.Context, batch []store.ReleaseRequest) []store.ReleaseReply {
	ctx = c.context(ctx)
	one := c.store.fault.release
	if one == nil || ctx.Err() != nil {
		one = func(c *brokenSession, r store.ReleaseRequest) store.ReleaseReply {
			return c.Session.Release(ctx, []store.ReleaseRequest{r})[0]
		}
	}
	return short(c, "Release", each(c, batch, one))
}

func (c *brokenSession) Inspect(ctx context.Context, key string) (store.Info, error) {
	info, err := c.Session.Inspect(c.context(ctx), key)
	if err == nil && c.store.fault.inspect != nil {
		info = c.store.fault.inspect(info)
	}
	return info, err
}

func (c *brokenSession) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	if c.store.fault.list != nil && ctx.Err() == nil {
		return c.store.fault.list(c, prefix)
	}
	return c.Session.List(c.context(ctx), prefix)
}

func (c *brokenSession) Force(ctx context.Context, key string, token int64) (bool, error) {
	if c.store.fault.force != nil && ctx.Err() == nil {
		return c.store.fault.force(c, key, token)
	}
	return c.Session.Force(c.context(ctx), key, token)
}

func (c *brokenSession) SetLimit(ctx context.Context, key string, limit int32) error {
	if c.store.fault.limit != nil && ctx.Err() == nil {
		return c.store.fault.limit(c, key, limit)
	}
	return c.Session.(store.LimitSession).SetLimit(c.context(ctx), key, limit)
}

func (c *brokenSession) WriteNote(ctx context.Context, r store.NoteRequest) error {
	ctx = c.context(ctx)
	if c.store.fault.note != nil && ctx.Err() == nil {
		return c.store.fault.note(c, r)
	}
	return c.writeNote(ctx, r)
}

func (c *brokenSession) ReadNote(ctx context.Context, key string) (store.Note, error) {
	n, err := c.Session.(store.NoteSession).ReadNote(c.context(ctx), key)
	if err == nil && c.store.fault.noted != nil {
		n = c.store.fault.noted(key, n)
	}
	return n, err
}

func (c *brokenSession) Observe(key string, on bool) error {
	if c.store.fault.observe != nil {
		return c.store.fault.observe(c, key, on)
	}
	return c.Session.(store.ObserveSession).Observe(key, on)
}

func (c *brokenSession) AnnounceEnd(ctx context.Context, key string, token int64) error {
	if c.store.fault.ended != nil {
		return c.store.fault.ended(c, key, token)
	}
	return c.Session.(store.ObserveSession).AnnounceEnd(ctx, key, token)
}

func (c *brokenSession) Close(ctx context.Context) error {
	if c.store.fault.leave != nil {
		return c.store.fault.leave(c)
	}
	return c.Session.Close(ctx)
}

// The calls of the session that works, for use in faults.

func (c *brokenSession) acquire(r store.AcquireRequest) store.AcquireReply {
	return c.Session.Acquire(context.Background(), []store.AcquireRequest{r})[0]
}

func (c *brokenSession) renew(r store.RenewRequest) store.RenewReply {
	return c.Session.Renew(context.Background(), []store.RenewRequest{r})[0]
}

func (c *brokenSession) release(r store.ReleaseRequest) store.ReleaseReply {
	return c.Session.Release(context.Background(), []store.ReleaseRequest{r})[0]
}

func (c *brokenSession) inspect(key string) store.Info {
	info, _ := c.Session.Inspect(context.Background(), key)
	return info
}

func (c *brokenSession) setLimit(key string, limit int32) error {
	return c.Session.(store.LimitSession).SetLimit(context.Background(), key, limit)
}

func (c *brokenSession) writeNote(ctx context.Context, r store.NoteRequest) error {
	return c.Session.(store.NoteSession).WriteNote(ctx, r)
}
