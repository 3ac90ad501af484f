// SPDX-License-Identifier: Apache-2.0

package quorumstore_test

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A frail store is one in memory whose server can die, be restarted empty, hang and lose messages. After a restart it has
// the grace of a Redis server, and writes renewed holdings anew. Times are those of a bubble.
type frail struct {
	store.Store // for its Features

	mu      sync.Mutex
	server  store.Store
	began   int // counts restarts
	state   frailty
	grace   time.Time
	largest int64 // token given so far
	unasked int   // requests that came late
	looked  int   // at "key"
}

type frailty int

const (
	sound  frailty = iota
	killed         // requests are refused
	hung           // requests are delayed until it is sound
	lossy          // some answers don't come, or requests come late
	far            // each way takes 20 ms more
)

// gracePeriod is longer than any TTL of these tests.
const gracePeriod = 3 * time.Second

// aClock is added to the tokens of a server at each restart, in the way that a clock would have moved on.
const aClock = 1 << 24

func newFrail() *frail {
	s := memstore.New()
	return &frail{Store: s, server: s}
}

func (f *frail) set(state frailty) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state = state
}

// way is how long a request or an answer takes.
func (f *frail) way() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := rand.N(time.Millisecond)
	if f.state == far {
		d += 20 * time.Millisecond
	}
	return d
}

func (f *frail) looks() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.looked
}

// restart forgets everything. Tokens go on, as with a clock.
func (f *frail) restart() {
	s := memstore.New()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.server, f.state, f.grace = s, sound, time.Now().Add(gracePeriod)
	f.began++
	f.largest += aClock
	ctx := context.Background()
	session, _ := s.Open("clock", func(store.Event) {})
	session.Acquire(ctx, []store.AcquireRequest{{Key: "clock", Owner: "clock", TTL: time.Hour}})
	session.Renew(ctx, []store.RenewRequest{{Key: "clock", Owner: "clock", TTL: time.Hour, Token: f.largest}})
	session.Release(ctx, []store.ReleaseRequest{{Key: "clock", Owner: "clock"}})
	_ = session.Close(ctx)
}

func (f *frail) Open(id string, notify func(store.Event)) (store.Session, error) {
	return &frailSession{f: f, id: id, notify: notify}, nil
}

type frailSession struct {
	store.Session // nil

	f      *frail
	id     string
	notify func(store.Event)

	mu     sync.Mutex
	inner  store.Session
	began  int
	closed bool
	late   sync.WaitGroup
}

func (c *frailSession) Lane(string) int { return 0 }

// session returns that of the present server, and what remains of its grace.
func (c *frailSession) session() (store.Session, time.Duration) {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner == nil || c.began != c.f.began {
		c.began = c.f.began
		c.inner, _ = c.f.server.Open(c.id, c.notify)
	}
	return c.inner, time.Until(c.f.grace)
}

// send makes a call as a network would. The call may come later than its caller has waited, or its answer not at all.
func send[R any](ctx context.Context, c *frailSession, call func(store.Session, time.Duration) R) (R, error) {
	var none R
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return none, store.ErrClosed
	}
	if !sleep(ctx, c.f.way()) {
		return none, ctx.Err()
	}
	for {
		c.f.mu.Lock()
		state := c.f.state
		c.f.mu.Unlock()
		switch {
		case state == killed:
			return none, store.ErrUnreachable
		case state == hung:
			if !sleep(ctx, 10*time.Millisecond) {
				c.comesLate(func() { _, _ = send(context.Background(), c, call) })
				return none, store.ErrOutcomeUnknown
			}
			continue
		case state == lossy && rand.N(3) == 0:
			c.comesLate(func() { sleep(context.Background(), rand.N(2*time.Second)); call(c.session()) })
			<-ctx.Done()
			return none, store.ErrOutcomeUnknown
		}
		answer := call(c.session())
		if state == lossy && rand.N(3) == 0 || !sleep(ctx, c.f.way()) {
			<-ctx.Done()
			return none, store.ErrOutcomeUnknown
		}
		return answer, nil
	}
}

func (c *frailSession) comesLate(step func()) {
	c.f.mu.Lock()
	c.f.unasked++
	c.f.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.late.Go(step)
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func (c *frailSession) Acquire(ctx context.Context, batch []store.AcquireRequest) []store.AcquireReply {
	answer, err := send(ctx, c, func(s store.Session, grace time.Duration) store.AcquireReply {
		switch {
		case grace > 0 && batch[0].Wait:
			return store.AcquireReply{Status: store.Waiting, Grace: grace, Ticket: 1}
		case grace > 0:
			return store.AcquireReply{Err: &store.GraceError{Remaining: grace}}
		}
		reply := s.Acquire(context.Background(), batch)[0]
		c.f.mu.Lock()
		c.f.largest = max(c.f.largest, reply.Token+reply.Reserved)
		c.f.mu.Unlock()
		return reply
	})
	if err != nil {
		answer.Err = err
	}
	return []store.AcquireReply{answer}
}

func (c *frailSession) Renew(ctx context.Context, batch []store.RenewRequest) []store.RenewReply {
	answer, err := send(ctx, c, func(s store.Session, grace time.Duration) store.RenewReply {
		r := batch[0]
		reply := s.Renew(context.Background(), batch)[0]
		if grace > 0 && r.Token > 0 && errors.Is(reply.Err, store.ErrLost) {
			anew := store.AcquireRequest{Key: r.Key, Owner: r.Owner, TTL: r.TTL, Description: r.Description}
			if s.Acquire(context.Background(), []store.AcquireRequest{anew})[0].Status == store.Granted {
				reply = s.Renew(context.Background(), batch)[0]
			}
		}
		return reply
	})
	if err != nil {
		answer.Err = err
	}
	return []store.RenewReply{answer}
}

func (c *frailSession) Release(ctx context.Context, batch []store.ReleaseRequest) []store.ReleaseReply {
	answer, err := send(ctx, c, func(s store.Session, grace time.Duration) store.ReleaseReply {
		r := batch[0]
		r.Uncertain = r.Uncertain || grace > 0
		return s.Release(context.Background(), []store.ReleaseRequest{r})[0]
	})
	if err != nil {
		answer.Err = err
	}
	return []store.ReleaseReply{answer}
}

func (c *frailSession) Inspect(ctx context.Context, key string) (store.Info, error) {
	if key == "key" {
		c.f.mu.Lock()
		c.f.looked++
		c.f.mu.Unlock()
	}
	type found struct {
		store.Info
		error
	}
	answer, err := send(ctx, c, func(s store.Session, _ time.Duration) found {
		info, err := s.Inspect(context.Background(), key)
		return found{info, err}
	})
	if err == nil {
		err = answer.error
	}
	return answer.Info, err
}

func (c *frailSession) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	s, _ := c.session()
	return s.List(ctx, prefix)
}

func (c *frailSession) Force(ctx context.Context, key string, token int64) (bool, error) {
	s, _ := c.session()
	return s.Force(ctx, key, token)
}

// Close waits for what comes late, for which the server has to be sound.
func (c *frailSession) Close(context.Context) error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.late.Wait()
	return nil
}
