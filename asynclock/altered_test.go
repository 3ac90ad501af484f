// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// An altered store is another one, except for what a test alters. For faults of single requests and events
// there is asynclocktest.
type altered struct {
	store.Store

	features func(*store.Features) // nil: as they are, and so for all below
	refuses  error                 // the answer to who joins
	bare     bool                  // its sessions have no methods but those that each store needs

	// These get whole batches, before the store. Their error is the answer to each request of the batch.
	acquire func(context.Context, []store.AcquireRequest) error
	renew   func(context.Context, []store.RenewRequest) error
	release func(context.Context, []store.ReleaseRequest) error

	acquired func(*store.AcquireReply)
	renewed  func(*store.RenewReply)
	released func(*store.ReleaseReply)
	lane     func(key string) int
	listed   func(store.Info) (store.Info, error)
	spelled  func(key string) string
	shared   func(key string) error
	observe  func(on bool) // before the store
	mute     bool          // it sends no events
}

func (a altered) Features() store.Features {
	f := a.Store.Features()
	if a.features != nil {
		a.features(&f)
	}
	return f
}

func (a altered) Open(id string, events func(store.Event)) (store.Session, error) {
	if a.mute {
		events = func(store.Event) {}
	}
	if a.refuses != nil {
		return nil, a.refuses
	}
	s, err := a.Store.Open(id, events)
	if a.bare || err != nil {
		return struct{ store.Session }{s}, err
	}
	return alteredSession{s.(wholeSession), a}, nil //nolint:forcetypeassert // what altered is made of has all
}

// A wholeSession has all that a store may do.
type wholeSession interface {
	store.ObserveSession
	store.LimitSession
}

type alteredSession struct {
	wholeSession

	by altered
}

func (s alteredSession) Lane(key string) int {
	if s.by.lane != nil {
		return s.by.lane(key)
	}
	return s.wholeSession.Lane(key)
}

func (s alteredSession) Spell(key string) string {
	if s.by.spelled == nil {
		return key
	}
	return s.by.spelled(key)
}

func (s alteredSession) CheckShared(key string) error {
	if s.by.shared == nil {
		return nil
	}
	return s.by.shared(key)
}

func (s alteredSession) Observe(key string, on bool) error {
	if s.by.observe != nil {
		s.by.observe(on)
	}
	return s.wholeSession.Observe(key, on)
}

func (s alteredSession) Acquire(ctx context.Context, batch []store.AcquireRequest) []store.AcquireReply {
	return alter(ctx, batch, s.by.acquire, s.wholeSession.Acquire, s.by.acquired,
		func(err error) store.AcquireReply { return store.AcquireReply{Err: err} })
}

func (s alteredSession) Renew(ctx context.Context, batch []store.RenewRequest) []store.RenewReply {
	return alter(ctx, batch, s.by.renew, s.wholeSession.Renew, s.by.renewed,
		func(err error) store.RenewReply { return store.RenewReply{Err: err} })
}

func (s alteredSession) Release(ctx context.Context, batch []store.ReleaseRequest) []store.ReleaseReply {
	return alter(ctx, batch, s.by.release, s.wholeSession.Release, s.by.released,
		func(err error) store.ReleaseReply { return store.ReleaseReply{Err: err} })
}

func (s alteredSession) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	if s.by.listed == nil {
		return s.wholeSession.List(ctx, prefix)
	}
	return func(yield func(store.Info, error) bool) {
		for info, err := range s.wholeSession.List(ctx, prefix) {
			if err == nil {
				info, err = s.by.listed(info)
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// alter makes one call to the store, with what is altered before and after it.
func alter[Q, R any](
	ctx context.Context, batch []Q, before func(context.Context, []Q) error,
	do func(context.Context, []Q) []R, after func(*R), failed func(error) R,
) []R {
	if before != nil {
		if err := before(ctx, batch); err != nil {
			replies := make([]R, len(batch))
			for i := range replies {
				replies[i] = failed(err)
			}
			return replies
		}
	}
	replies := do(ctx, batch)
	for i := range replies {
		if after != nil {
			after(&replies[i])
		}
	}
	return replies
}

// lanes has the store make a lane for each first letter of a key.
func lanes(st store.Store) altered {
	return altered{Store: st, lane: func(key string) int { return int(key[0]) }}
}

// without has the store lack what change takes from it.
func without(st store.Store, change func(*store.Features)) altered {
	return altered{Store: st, features: change}
}

// graceful has the store say "wait" because of its grace.
func graceful(st store.Store, grace time.Duration) altered {
	return altered{Store: st, acquired: func(r *store.AcquireReply) {
		if r.Status == store.Waiting {
			r.Grace, r.Remaining, r.Holder, r.HolderToken = grace, grace, "", 0
		}
	}}
}

// promising has the store answer each request that it will tell who wants the key, or that it will
// not, whatever is asked of it and comes of it.
func promising(st store.Store, able, watched bool) altered {
	return altered{
		Store:    st,
		features: func(f *store.Features) { f.Retention = able },
		acquired: func(r *store.AcquireReply) { r.WillNotify = watched },
	}
}

// Sizes are how many requests there were in each call to a store.
type sizes struct {
	mu                           sync.Mutex
	acquires, renewals, releases []int
}

// counted has the store note the sizes of its calls.
func counted(st store.Store) (altered, *sizes) {
	s := new(sizes)
	note := func(to *[]int, n int) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		*to = append(*to, n)
		return nil
	}
	return altered{
		Store:   st,
		acquire: func(_ context.Context, b []store.AcquireRequest) error { return note(&s.acquires, len(b)) },
		renew:   func(_ context.Context, b []store.RenewRequest) error { return note(&s.renewals, len(b)) },
		release: func(_ context.Context, b []store.ReleaseRequest) error { return note(&s.releases, len(b)) },
	}, s
}

// A closable store notes how often it is closed.
type closable struct {
	store.Store

	closed int
	err    error // of Close
}

func (s *closable) Close() error {
	s.closed++
	return s.err
}
