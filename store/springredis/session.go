// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/backoff"
	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/internal/redisslot"
	"github.com/asynclock/asynclock-go/pubsub"
	"github.com/asynclock/asynclock-go/store"
)

// A session is one client.
type session struct {
	store   *Store
	id      string
	events  func(store.Event)
	waiting *waitingList
	inbox   *pubsub.Inbox // nil: waiters only poll

	left atomic.Bool
}

var _ store.Session = (*session)(nil)

func newSession(st *Store, id string, events func(store.Event)) *session {
	s := &session{store: st, id: id, events: events, waiting: newWaitingList()}
	if st.settings.lockType == PubSubLock {
		s.openInbox()
	}
	return s
}

// Lane returns the slot in a Cluster: only keys of one slot are known to share a node.
// Elsewhere all keys share one lane.
func (s *session) Lane(key string) int {
	if s.store.conn.Cluster() {
		return redisslot.Of(s.store.names.lock(key))
	}
	return 0
}

// Close ends the subscription. It waits for that until ctx ends; it ends anyway.
func (s *session) Close(ctx context.Context) error {
	if s.left.Swap(true) || s.inbox == nil {
		return nil
	}
	return s.inbox.Close(ctx)
}

// usable returns why no request can be sent any more, or nil.
func (s *session) usable() error {
	if s.left.Load() || s.store.conn.Closed() {
		return store.ErrClosed
	}
	return nil
}

// live reports whether messages about releases arrive.
func (s *session) live() bool { return s.inbox != nil && s.inbox.Live() }

// perform runs a script for each request of a batch and returns their replies.
// put makes a call of the request, or says why it makes no sense; read reads the
// result; failed makes a reply of an error.
func perform[Request, Reply any](
	ctx context.Context, s *session, sc *redisconn.Script, batch []Request,
	put func(*Request) (call, error),
	read func(*Request, rueidis.RedisResult) Reply,
	failed func(error) Reply,
) []Reply {
	replies := make([]Reply, len(batch))
	if err := s.usable(); err != nil {
		for i := range replies {
			replies[i] = failed(err)
		}
		return replies
	}
	var calls []call
	var sent []int // whose calls they are
	for i := range batch {
		c, err := put(&batch[i])
		if err != nil {
			replies[i] = failed(err)
			continue
		}
		calls, sent = append(calls, c), append(sent, i)
	}
	for i, result := range s.store.run(ctx, sc, calls) {
		replies[sent[i]] = read(&batch[sent[i]], result)
	}
	return replies
}

// millis writes a duration, rounded up: a TTL must not be shorter than what the
// client counts on.
func millis(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Millisecond-1)/time.Millisecond), 10)
}

// jitter returns a duration from two thirds of d to four thirds.
func jitter(d time.Duration) time.Duration { return backoff.Jitter(d, 1.0/3) }
