// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"

	"github.com/asynclock/asynclock-go/store"
)

// A session is one client.
type session struct {
	store  *Store
	id     string
	events func(store.Event)

	handoffs  keySet // the keys that went to their only waiter when they were last given back
	shared    keySet // the keys that others have shared lately
	contended keySet // the keys that others had or wanted lately
	rivaled   keySet // the keys that were expected to be free lately, and were not
	uncommon  keySet // the keys that release_fast.lua could not give back the last time
	vacancies vacancies

	left    atomic.Bool
	classic atomic.Pointer[inbox]          // for all keys
	sharded [buckets]atomic.Pointer[inbox] // for those of one bucket
	mu      sync.Mutex                     // held to open an inbox and to leave
}

var _ store.Session = (*session)(nil)

// newSession opens the inbox for all keys, if there is one, so that the inbox is live by the
// time of the first wait.
func newSession(st *Store, id string, events func(store.Event)) *session {
	s := &session{store: st, id: id, events: events}
	if !st.conn.Cluster() {
		s.inbox(0)
	}
	return s
}

// Lane returns the bucket in a Cluster: the keys of a bucket share a node, and a script may
// have several of them. Elsewhere all keys share one lane.
func (s *session) Lane(key string) int {
	if s.store.conn.Cluster() {
		return bucketOf(key)
	}
	return 0
}

// place is the lane of a key for requests that are made together. Where slots matter, these have keys of one bucket only.
func (s *session) place(key string) int {
	if s.store.conn.Cluster() || s.store.slotted.Load() {
		return bucketOf(key)
	}
	return 0
}

// Close closes the inboxes. It waits for their goroutines until ctx ends. They end in any
// case.
func (s *session) Close(ctx context.Context) error {
	s.mu.Lock()
	s.left.Store(true)
	s.mu.Unlock()
	s.observesNoMore(func(string) bool { return true })
	inboxes := s.open()
	errs := make([]error, len(inboxes))
	var closing sync.WaitGroup // all at once, so that none waits for another that hangs
	for i, in := range inboxes {
		closing.Go(func() { errs[i] = in.Close(ctx) })
	}
	closing.Wait()
	for _, in := range inboxes {
		s.store.silence.ends(in.channel) // nobody knows whether it lasts
	}
	return cmp.Or(append(errs, s.store.hub.awaitEnds(ctx))...)
}

// usable returns why no request can be sent any more, or nil.
func (s *session) usable() error {
	if s.left.Load() || s.store.conn.Closed() {
		return store.ErrClosed
	}
	return nil
}
