// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynclock/asynclock-go/internal/batch"
	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// A script that does one common thing for many keys costs the server and the client half of what a script
// for each key costs. So requests that come while many others are under way go together: what has gathered while
// two such scripts are under way is the next one. Nobody waits for company. The script leaves alone whatever is
// less common, and says so. Such a request is then made by itself.

const (
	// maxTogether is how many requests a script has at most. A server takes some 4 µs for each, and
	// does nothing else meanwhile.
	maxTogether = 64
	// scriptsUnderWay is how many scripts of a kind are under way at once: one at the server, and one
	// on its way. With more of them each has fewer requests.
	scriptsUnderWay = 2
	// overlooked is after which time a script does not count: the server is far away or silent.
	overlooked = time.Millisecond
	// byThemselves is how many requests are under way by themselves before others go together. Fewer
	// callers lose more by waiting for each other than they gain.
	byThemselves = 16
	// togetherFor bounds a script if one of its requests has no deadline.
	togetherFor = 5 * time.Second
)

// A kind is how requests of one kind are made together.
type kind[Request, Reply any] struct {
	key  func(q *Request) string
	fits func(s *session, q *Request) bool // whether a request can be made together with others
	// put writes requests into a call. It returns them in their order there, without those that don't fit.
	put func(c *call, all []*joined[Request, Reply]) (in []*joined[Request, Reply])
	// read answers the requests of a call that the server has run, except those that it has left alone.
	read func(result redisdriver.Result, in []*joined[Request, Reply])
	err  func(r *Reply) *error // that of a reply
}

// failed makes a reply of an error.
func (k *kind[Request, Reply]) failed(err error) (reply Reply) {
	*k.err(&reply) = err
	return reply
}

// A joined is a request that is made together with others.
type joined[Request, Reply any] struct {
	session  *session
	request  Request // a copy: the caller may have gone
	address  string  // see session.address
	deadline time.Time

	state    atomic.Int32
	chosen   int64 // the token that the client chose; 0: none
	reply    Reply
	answered bool          // the reply is there; otherwise the request is to be made by itself
	done     chan struct{} // has an element when the script has ended
}

// The states of a joined request: it waits until it is sent, or its caller has left.
const (
	joinedWaits int32 = iota
	joinedIsSent
	joinedIsLeft
)

func (j *joined[Request, Reply]) answer(reply Reply) { j.reply, j.answered = reply, true }

// A gathering makes requests of one kind together, of all sessions of a store.
type gathering[Request, Reply any] struct {
	store *Store
	kind  kind[Request, Reply]
	queue *batch.Queue[*joined[Request, Reply]]
	spare sync.Pool // of *joined[Request, Reply]
}

func newGathering[Request, Reply any](st *Store, k kind[Request, Reply]) *gathering[Request, Reply] {
	g := &gathering[Request, Reply]{store: st, kind: k}
	g.queue = batch.New(maxTogether, scriptsUnderWay, 0, g.send).Overlook(overlooked)
	return g
}

// request returns a request of a session, to be made together with others.
func (g *gathering[Request, Reply]) request(s *session, q *Request, address string) *joined[Request, Reply] {
	j, ok := g.spare.Get().(*joined[Request, Reply])
	if !ok {
		j = &joined[Request, Reply]{done: make(chan struct{}, 1)}
	}
	j.session, j.request, j.address = s, *q, address
	return j
}

// result returns what has become of a request, which nobody else uses any more.
func (g *gathering[Request, Reply]) result(j *joined[Request, Reply]) (reply Reply, answered bool) {
	reply, answered = j.reply, j.answered
	var nothing Reply
	var none Request // the owner is a secret
	j.session, j.request, j.reply, j.answered = nil, none, nothing, false
	j.state.Store(joinedWaits)
	g.spare.Put(j)
	return reply, answered
}

// join makes a request together with others. It reports whether that has answered it.
func (g *gathering[Request, Reply]) join(ctx context.Context, j *joined[Request, Reply]) (reply Reply, answered bool) {
	place := j.session.place(g.kind.key(&j.request))
	j.deadline, _ = ctx.Deadline()
	g.store.traffic.joined[place].Add(1)
	defer g.store.traffic.joined[place].Add(-1)
	if !g.queue.Add(place, j) {
		return g.kind.failed(store.ErrClosed), true
	}
	select {
	case <-j.done:
		return g.result(j)
	case <-ctx.Done():
		j.state.CompareAndSwap(joinedWaits, joinedIsLeft)
		return g.kind.failed(ctx.Err()), true // j is still in use
	}
}

// alone makes a request by the script for several. It reports whether that has answered it.
func (g *gathering[Request, Reply]) alone(ctx context.Context, j *joined[Request, Reply]) (reply Reply, answered bool) {
	g.run(ctx, []*joined[Request, Reply]{j})
	return g.result(j)
}

// send makes requests together, except for those whose callers have left.
func (g *gathering[Request, Reply]) send(_ int, all []*joined[Request, Reply]) {
	all = slices.DeleteFunc(all, func(j *joined[Request, Reply]) bool { return !j.state.CompareAndSwap(joinedWaits, joinedIsSent) })
	if len(all) == 0 {
		return
	}
	ctx, cancel := context.WithDeadline(g.store.life, latest(all))
	defer cancel()
	err := g.guarded(ctx, all)
	for _, j := range all {
		if err != nil {
			j.answer(g.kind.failed(g.store.conn.Failure(err)))
		}
		g.store.notTheirs(g.kind.err(&j.reply))
		j.done <- struct{}{}
	}
}

// notTheirs replaces the error of a script's own context, which no caller has.
func (st *Store) notTheirs(err *error) {
	switch {
	case !errors.Is(*err, context.Canceled) && !errors.Is(*err, context.DeadlineExceeded):
	case st.life.Err() != nil:
		*err = store.ErrClosed
	default:
		*err = store.ErrOutcomeUnknown
	}
}

// guarded is run on a goroutine that is no caller's. A panic of the driver is an error there.
func (g *gathering[Request, Reply]) guarded(ctx context.Context, all []*joined[Request, Reply]) (err error) {
	defer redisconn.Recovered(&err)
	g.run(ctx, all)
	return nil
}

// run makes requests together, and answers those that the script has not left alone.
func (g *gathering[Request, Reply]) run(ctx context.Context, all []*joined[Request, Reply]) {
	calls := borrowCalls(1)
	defer returnCalls(calls)
	c := &(*calls)[0]
	if in := g.kind.put(c, all); len(in) > 0 {
		g.read(g.store.runOne(ctx, c), in)
	}
}

// read answers the requests of a call, except those that are to be made by themselves.
func (g *gathering[Request, Reply]) read(result redisdriver.Result, in []*joined[Request, Reply]) {
	if _, refused := result.Refusal(); !refused {
		g.kind.read(result, in)
	} else if isCrossSlot(result) {
		g.store.slotted.Store(true)
	} // each request will hear by itself why it is refused
}

// latest returns until when at least one of the callers waits.
func latest[Request, Reply any](all []*joined[Request, Reply]) time.Time {
	until := time.Now().Add(togetherFor)
	if slices.ContainsFunc(all, func(j *joined[Request, Reply]) bool { return j.deadline.IsZero() }) {
		return until
	}
	return slices.MaxFunc(all, func(a, b *joined[Request, Reply]) int { return a.deadline.Compare(b.deadline) }).deadline
}

// A traffic counts the requests of all kinds that are under way, by their places.
type traffic struct {
	alone, joined [buckets]atomic.Int32
}

// enter reports whether a request is to be made by itself, because few are under way. It is then to leave.
func (t *traffic) enter(place int) bool {
	if t.alone[place].Add(1)+t.joined[place].Load() <= byThemselves {
		return true
	}
	t.leave(place)
	return false
}

func (t *traffic) leave(place int) { t.alone[place].Add(-1) }
