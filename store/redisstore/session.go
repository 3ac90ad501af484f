// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// A session is one client.
type session struct {
	store  *Store
	id     string
	events func(store.Event)

	handoffs  keySet // the keys that went to their only waiter when they were last given back
	shared    keySet // the keys that others have shared lately
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

// An exchange is how the requests of a kind are made and answered.
type exchange[Request, Reply any] struct {
	// put writes a request into a call, or says why it makes no sense. try counts how often it
	// was made before.
	put func(c *call, q *Request, try int) error
	// read reads the result of a call. again says that nothing has happened, and that the
	// request is to be made again, unless this was the last of the tries.
	read func(c *call, q *Request, result redisdriver.Result) (reply Reply, again bool)
	// failed makes a reply of an error.
	failed func(error) Reply
}

// perform makes a call of each request of a batch and returns their replies.
func perform[Request, Reply any](ctx context.Context, s *session, batch []Request, e exchange[Request, Reply]) []Reply {
	return e.perform(ctx, s, batch, 0)
}

// perform makes a call of each request. Those that are to be made again follow in another round.
func (e exchange[Request, Reply]) perform(ctx context.Context, s *session, batch []Request, try int) []Reply {
	replies := make([]Reply, len(batch))
	again := e.attempt(ctx, s, round[Request, Reply]{try: try, batch: batch, replies: replies})
	if again == nil || try == tries-1 {
		return replies
	}
	rest := make([]Request, len(again))
	for n, i := range again {
		rest[n] = batch[i]
	}
	for n, reply := range e.perform(ctx, s, rest, try+1) {
		replies[again[n]] = reply
	}
	return replies
}

// A round is requests that are made at once, and room for their replies.
type round[Request, Reply any] struct {
	try     int // from 0
	batch   []Request
	replies []Reply
}

// attempt makes the requests of a round. It returns the indexes of those that are to be made
// again.
func (e exchange[Request, Reply]) attempt(ctx context.Context, s *session, r round[Request, Reply]) (again []int) {
	if err := s.usable(); err != nil {
		for i := range r.replies {
			r.replies[i] = e.failed(err)
		}
		return nil
	}
	calls := borrowCalls(len(r.batch))
	defer returnCalls(calls)
	if len(r.batch) == 1 {
		if e.one(ctx, s, r, &(*calls)[0]) {
			again = []int{0}
		}
		return again
	}
	return e.many(ctx, s, r, *calls)
}

// one makes the only request of a round, and says whether it is to be made again.
func (e exchange[Request, Reply]) one(ctx context.Context, s *session, r round[Request, Reply], c *call) (again bool) {
	q := &r.batch[0]
	if err := e.put(c, q, r.try); err != nil {
		r.replies[0] = e.failed(err)
		return false
	}
	r.replies[0], again = e.read(c, q, s.store.runOne(ctx, c))
	return again
}

// many makes the requests of a round together, and returns the indexes of those that are to
// be made again.
func (e exchange[Request, Reply]) many(ctx context.Context, s *session, r round[Request, Reply], calls []call) (again []int) {
	sent := make([]int, 0, len(r.batch)) // whose calls are to be made
	for i := range r.batch {
		next := &calls[len(sent)]
		if err := e.put(next, &r.batch[i], r.try); err != nil {
			next.reset()
			r.replies[i] = e.failed(err)
		} else {
			sent = append(sent, i)
		}
	}
	for n, result := range s.store.run(ctx, calls[:len(sent)]) {
		i, repeat := sent[n], false
		if r.replies[i], repeat = e.read(&calls[n], &r.batch[i], result); repeat {
			again = append(again, i)
		}
	}
	return again
}
