// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/internal/failure"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// Downgrade turns a writer's lease into a reader's, without another writer in between. The lease ends with
// [ErrUnlocked], and the one that is returned takes its place, with a larger token. Readers at the head
// of the queue join at once. The new lease has the values of ctx, as one that RLock returns.
//
// The request is repeated as long as ctx lasts and the lease would have lasted. A ctx that was made under this
// lease, as that of WithLock's function is, ends with the lease. So only its values count. The caller of
// Downgrade unlocks the new lease, also inside WithLock.
//
// If Downgrade fails, the key has been given back as by [Lease.Unlock], and the errors are those of Unlock. In these cases
// nothing has happened:
//
//   - The error is [ErrInvalidOption]: the lease is a reader's or has permits, shares a holding by
//     re-entry, or has [WithMinHold].
//   - The error is [ErrUnsupported]: the store has no readers ([store.Features]), or none of this key.
//   - The error is ctx's: it had ended before the call.
//   - The lease had ended before. The error is the lease's.
func (l *Lease) Downgrade(ctx context.Context) (*Lease, error) {
	if l.isNone() {
		return nil, &Error{Op: "downgrade", Err: errNoLease}
	}
	reader, err := l.downgrade(ctx)
	if err != nil {
		return nil, &Error{"downgrade", l.Key(), err}
	}
	return reader, nil
}

func (l *Lease) downgrade(ctx context.Context) (reader *Lease, err error) {
	c := l.state.shard.client
	switch {
	case ctx == nil:
		return nil, errNilContext
	case ctx.Err() != nil:
		return nil, waitEnded(ctx)
	case !c.features.Shared:
		return nil, c.features.Check(store.Share{Mode: Shared}, 0)
	}
	if some, ok := c.session.(store.SharingSession); ok {
		if err := some.CheckShared(l.Key()); err != nil {
			return nil, err
		}
	}
	d, err := l.beginDowngrade()
	if err != nil {
		return nil, err
	}
	writer := l.hold()
	var told []func()
	defer func() {
		if reader == nil {
			for _, tell := range told {
				tell()
			}
			writer.tell()
			return
		}
		orUnlock(reader, func() {
			for _, tell := range told {
				tell()
			}
			if writer.tell(); c.hooks != nil {
				reader.begins(l.downgradeAsked(ctx, writer))
			}
		})
	}()
	ctx = l.outlivedBy(ctx)
	w := newReader(ctx)
	w.state, w.origin = l.state, c.leaks.origin()
	reply := store.ReleaseReply{Err: ErrOutcomeUnknown}
	// This also runs if the store panics: the key must not be held by nobody.
	defer func() { reader, err = l.endDowngrade(d, w, &reply) }()
	reply = c.requestRest(ctx, l.core.Terms.TTL, d, &told)
	return nil, nil
}

// outlivedBy returns ctx, or one without an end if ctx was made under l: that has just ended it.
func (l *Lease) outlivedBy(ctx context.Context) context.Context {
	for lc := leaseContextOf(ctx); lc != nil; lc = lc.outer {
		if lc.lease == l {
			return context.WithoutCancel(ctx)
		}
	}
	return ctx
}

// requestRest sends the request until it has an answer, ctx ends or the holding ends by itself.
func (c *Client) requestRest(ctx context.Context, ttl time.Duration, d *machine.Downgrade, told *[]func()) store.ReleaseReply {
	for failures := 0; ; {
		reply := c.sendRest(ctx, ttl, d, told)
		failures++
		left := d.Timeout.Sub(watchdog.Refresh())
		if reply.Err == nil || !failure.Transient(reply.Err) || ctx.Err() != nil || left <= 0 || c.background.Err() != nil {
			if reply.Err != nil && ctx.Err() != nil {
				reply.Err = failure.Join(ErrOutcomeUnknown, waitEnded(ctx))
			}
			return reply
		}
		pauseFor(ctx, min(machine.RetryIn(failures, ttl), left))
	}
}

func (c *Client) sendRest(ctx context.Context, ttl time.Duration, d *machine.Downgrade, told *[]func()) store.ReleaseReply {
	bounded := c.limits.bound(ctx, machine.CallTimeout(ttl), 0)
	defer bounded.leave()
	now := watchdog.Now()
	reply := c.session.Release(bounded, []store.ReleaseRequest{d.Request})[0]
	reply.Err = ourTimeout(ctx, reply.Err)
	*told = append(*told, c.hooks.answered("release", now, 1, func(int) error { return reply.Err }))
	return reply
}

func (l *Lease) beginDowngrade() (*machine.Downgrade, error) {
	st := l.state.begin()
	defer l.state.end(&st)
	d, err := l.state.machine.BeginDowngrade(&l.core, &st)
	if err != nil && err != l.core.Err { //nolint:errorlint // is it the very same value?
		return nil, fmt.Errorf("%w: the lease can't be a reader's: %w", ErrInvalidOption, err)
	}
	return d, err
}

// endDowngrade handles the store's answer.
func (l *Lease) endDowngrade(d *machine.Downgrade, w *waiter, reply *store.ReleaseReply) (*Lease, error) {
	if reply.Err != nil {
		w.verdict = outcomeOf(reply.Err)
	}
	s := l.state
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	st := s.stepNow()
	s.machine.EndDowngrade(d, &w.Waiter, reply, &st)
	w.countLocked(requested)
	if w.Stage == machine.Ended {
		if w.verdict == 0 {
			w.verdict = outcomeOf(w.Err)
		}
		w.countLocked(w.verdict)
	}
	s.carryOutLocked(&st)
	reader := w.lease()
	if reader != nil {
		l.moreLocked().reader = reader.leaseCore
	}
	return reader, w.Err
}
