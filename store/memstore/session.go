// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"cmp"
	"context"
	"iter"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// shown is how many waiters, and how many holders, Inspect describes.
const shown = 10

// A session is one client. All that it has in the store points to it, so the waiters of a session
// that has left are recognized everywhere.
type session struct {
	store  *Store
	events func(store.Event)
	left   bool // guarded by store.mu
}

var _ store.LimitSession = (*session)(nil)

// Lane returns 0: all requests go one way, through the store's mutex.
func (c *session) Lane(string) int { return 0 }

func (c *session) Acquire(ctx context.Context, batch []store.AcquireRequest) []store.AcquireReply {
	return serve(ctx, c, batch, (*txn).acquire, func(err error) store.AcquireReply {
		return store.AcquireReply{Err: err}
	})
}

func (c *session) Renew(ctx context.Context, batch []store.RenewRequest) []store.RenewReply {
	return serve(ctx, c, batch, (*txn).renew, func(err error) store.RenewReply {
		return store.RenewReply{Err: err}
	})
}

func (c *session) Release(ctx context.Context, batch []store.ReleaseRequest) []store.ReleaseReply {
	return serve(ctx, c, batch, (*txn).release, func(err error) store.ReleaseReply {
		return store.ReleaseReply{Err: err}
	})
}

func (c *session) Inspect(ctx context.Context, key string) (info store.Info, err error) {
	err = c.take(ctx, func(t *txn) { info = t.inspect(key) })
	return info, err
}

func (c *session) Force(ctx context.Context, key string, token int64) (held bool, err error) {
	var refused error
	err = c.take(ctx, func(t *txn) { held, refused = t.force(key, token) })
	return held, cmp.Or(err, refused)
}

// List copies the names first and reads each key when its turn comes. The caller may therefore take
// long in between, and may use the store.
func (c *session) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		var keys []string
		err := c.take(ctx, func(t *txn) {
			for key := range t.locks {
				if strings.HasPrefix(key, prefix) {
					keys = append(keys, key)
				}
			}
		})
		for _, key := range keys {
			var info store.Info
			if info, err = c.Inspect(ctx, key); err != nil {
				break
			}
			if !info.Held && info.Waiters == 0 { // it ended meanwhile
				continue
			}
			info.Queue, info.Holders = nil, nil
			if !yield(info, nil) {
				return
			}
		}
		if err != nil {
			yield(store.Info{}, err)
		}
	}
}

// Close makes every later call fail with [asynclock.ErrClosed]. Waiters of this session count as
// dead from now on; its holdings last until their TTL ends. An event that is under way may still
// arrive. A second Close does nothing. The context is not used.
func (c *session) Close(context.Context) error {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	c.left = true
	c.store.unobserve(c)
	return nil
}

// serve answers a batch in one transaction.
func serve[Q, R any](ctx context.Context, c *session, batch []Q, one func(*txn, Q) R, failed func(error) R) []R {
	replies := make([]R, len(batch))
	err := c.take(ctx, func(t *txn) {
		for i, request := range batch {
			replies[i] = one(t, request)
		}
	})
	if err != nil {
		for i := range replies {
			replies[i] = failed(err)
		}
	}
	return replies
}

// take runs f as one transaction at the store, then delivers the events that f caused.
func (c *session) take(ctx context.Context, f func(*txn)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	mail, err := c.locked(f)
	for _, m := range mail {
		m.to.events(m.event)
	}
	return err
}

// locked is the part of take that has the store to itself.
func (c *session) locked(f func(*txn)) ([]mail, error) {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	if c.left {
		return nil, store.ErrClosed
	}
	t := txn{Store: c.store, from: c, now: time.Now()}
	t.sweep()
	f(&t)
	return t.mail, nil
}
