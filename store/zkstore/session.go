// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"context"
	"sync/atomic"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A session is one client. All clients of a store share its session with ZooKeeper.
type session struct {
	store  *Store
	events func(store.Event)
	left   atomic.Bool
}

var _ store.SharingSession = (*session)(nil)

// Lane returns 0: there is one connection.
func (s *session) Lane(string) int { return 0 }

// CheckShared refuses keys that are not those of [WithReadWriteKeys].
func (s *session) CheckShared(key string) error {
	_, err := s.store.settings.kindOf(key, store.Shared)
	return err
}

// usable returns the error if requests are not possible.
func (s *session) usable(ctx context.Context) error {
	if s.left.Load() || s.store.closed.Load() {
		return store.ErrClosed
	}
	return ctx.Err()
}

// Close ends the client's waiting. Its holdings stay until their TTL ends, because somebody may
// still be at work.
func (s *session) Close(context.Context) error {
	if s.left.Swap(true) {
		return nil
	}
	st := s.store
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, k := range st.lockNodes {
		if k.session == s && (k.phase == asking || k.phase == waiting) { // the others already leave
			k.until = watchdog.Now()
			st.taskLocked(k.leave)
		}
	}
	return nil
}

// each answers a batch, every element on a goroutine of its own, because the driver's calls block
// and take no context. When ctx ends, the calls under way continue, and their answers are ignored.
func each[Request, Reply any](
	ctx context.Context, s *session, batch []Request,
	one func(context.Context, Request) Reply, failed func(error) Reply,
) []Reply {
	replies := make([]Reply, len(batch))
	answers := make([]chan Reply, len(batch))
	for i, request := range batch {
		answers[i] = make(chan Reply, 1)
		if err := s.usable(ctx); err != nil {
			answers[i] <- failed(err)
			continue
		}
		s.store.mu.Lock()
		begun := s.store.taskLocked(func() { answers[i] <- one(ctx, request) })
		s.store.mu.Unlock()
		if !begun {
			answers[i] <- failed(store.ErrClosed)
		}
	}
	for i := range answers {
		select {
		case replies[i] = <-answers[i]:
		case <-ctx.Done():
			select {
			case replies[i] = <-answers[i]:
			default:
				replies[i] = failed(ctx.Err())
			}
		}
	}
	return replies
}

// alone is each for a call without a batch.
func alone[Reply any](ctx context.Context, s *session, one func(context.Context) (Reply, error)) (Reply, error) {
	type answer struct {
		reply Reply
		err   error
	}
	a := each(ctx, s, []struct{}{{}}, func(ctx context.Context, _ struct{}) answer {
		reply, err := one(ctx)
		return answer{reply, err}
	}, func(err error) answer { return answer{err: err} })[0]
	return a.reply, a.err
}
