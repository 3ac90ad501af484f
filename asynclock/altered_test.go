// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"iter"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// An altered store is another one, except for what a test alters.
type altered struct {
	store.Store

	features func(*store.Features) // nil: as they are, and so for all below
	acquired func(*store.AcquireReply)
	released func(*store.ReleaseReply)
	lane     func(key string) int
	listed   func(store.Info) (store.Info, error)
	spelled  func(key string) string
	mute     bool // it sends no events
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
	s, err := a.Store.Open(id, events)
	return alteredSession{s, a}, err
}

type alteredSession struct {
	store.Session

	by altered
}

func (s alteredSession) Lane(key string) int {
	if s.by.lane != nil {
		return s.by.lane(key)
	}
	return s.Session.Lane(key)
}

func (s alteredSession) Spell(key string) string {
	if s.by.spelled == nil {
		return key
	}
	return s.by.spelled(key)
}

func (s alteredSession) Acquire(ctx context.Context, batch []store.AcquireRequest) []store.AcquireReply {
	return alter(s.Session.Acquire(ctx, batch), s.by.acquired)
}

func (s alteredSession) Release(ctx context.Context, batch []store.ReleaseRequest) []store.ReleaseReply {
	return alter(s.Session.Release(ctx, batch), s.by.released)
}

func (s alteredSession) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	if s.by.listed == nil {
		return s.Session.List(ctx, prefix)
	}
	return func(yield func(store.Info, error) bool) {
		for info, err := range s.Session.List(ctx, prefix) {
			if err == nil {
				info, err = s.by.listed(info)
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

func alter[R any](replies []R, one func(*R)) []R {
	for i := range replies {
		if one != nil {
			one(&replies[i])
		}
	}
	return replies
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
