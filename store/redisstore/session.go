// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"

	"github.com/asynclock/asynclock-go/store"

	"github.com/redis/rueidis"
)

// A session is one client.
type session struct {
	store  *Store
	id     string
	events func(store.Event)

	handoffs handoffs

	left    atomic.Bool
	classic atomic.Pointer[inbox]          // for all keys
	sharded [buckets]atomic.Pointer[inbox] // for those of one bucket
	mu      sync.Mutex                     // held to open an inbox and to leave
}

var _ store.Session = (*session)(nil)

// newSession opens the inbox for all keys where there is one, so that it is live
// by the time of the first wait.
func newSession(st *Store, id string, events func(store.Event)) *session {
	s := &session{store: st, id: id, events: events}
	if !st.conn.Cluster() {
		s.inbox(0)
	}
	return s
}

// Lane: in a Cluster the keys of a bucket share a node, and a script may have
// several of them. Elsewhere everything does.
func (s *session) Lane(key string) int {
	if s.store.conn.Cluster() {
		return bucketOf(key)
	}
	return 0
}

// Close closes the inboxes. It waits for their goroutines until ctx ends; they
// end anyway.
func (s *session) Close(ctx context.Context) error {
	s.mu.Lock()
	s.left.Store(true)
	s.mu.Unlock()
	inboxes := s.open()
	errs := make([]error, len(inboxes))
	var closing sync.WaitGroup // all at once, so that none waits for another that hangs
	for i, in := range inboxes {
		closing.Go(func() { errs[i] = in.Close(ctx) })
	}
	closing.Wait()
	return cmp.Or(errs...)
}

// usable says why nothing can be asked any more, if so.
func (s *session) usable() error {
	if s.left.Load() || s.store.conn.Closed() {
		return store.ErrClosed
	}
	return nil
}

// perform makes a call of each request of a batch and returns their replies. put
// writes the request into the call, or says why it makes no sense; read reads
// the result; failed makes a reply of an error.
func perform[Request, Reply any](
	ctx context.Context, s *session, batch []Request,
	put func(*call, *Request) error,
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

	calls := borrowCalls(len(batch))
	defer returnCalls(calls)
	if len(batch) == 1 {
		one := &(*calls)[0]
		if err := put(one, &batch[0]); err != nil {
			replies[0] = failed(err)
		} else {
			replies[0] = read(&batch[0], s.store.runOne(ctx, one))
		}
		return replies
	}
	sent := make([]int, 0, len(batch)) // whose calls are to be made
	for i := range batch {
		next := &(*calls)[len(sent)]
		if err := put(next, &batch[i]); err != nil {
			next.reset()
			replies[i] = failed(err)
		} else {
			sent = append(sent, i)
		}
	}
	for i, result := range s.store.run(ctx, (*calls)[:len(sent)]) {
		replies[sent[i]] = read(&batch[sent[i]], result)
	}
	return replies
}
