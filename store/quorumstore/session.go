// SPDX-License-Identifier: Apache-2.0

package quorumstore

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/internal/tombstone"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

const (
	// hotFor is how long a key counts as wanted by others after an answer has said so.
	hotFor = time.Second
	// mostHot is how many such keys are remembered.
	mostHot = 10_000
	// idleFor is how long a claim without votes is remembered that nobody has released.
	idleFor = time.Minute
)

// A session is one client.
type session struct {
	store  *Store
	notify func(store.Event)
	nodes  []*node

	background sync.WaitGroup  // requests, releases and looks
	releasing  sync.WaitGroup  // releases that were not tried yet
	stop       <-chan struct{} // closed when the session ends, as are the contexts of limit
	end        context.CancelFunc
	limit      func(time.Duration) (context.Context, context.CancelFunc)

	steps chan func()   // to goroutines that have nothing to do
	idle  chan struct{} // as many as there are of these

	mu     sync.Mutex
	closed bool
	claims map[string]*claim           // by owner
	votes  map[string]*vote            // by id
	gone   tombstone.Owners            // released while a request of theirs may come
	hot    map[string]watchdog.Instant // the keys that others want, until then
	waited watchdog.Instant            // when a claim was last told to wait
	lastID uint64
}

var _ store.Session = (*session)(nil)

// Open connects a client to all nodes.
func (s *Store) Open(id string, notify func(store.Event)) (store.Session, error) {
	if len(s.nodes) == 0 {
		return nil, invalid("a Store that New did not make")
	}
	if id == "" || notify == nil {
		return nil, invalid("a session needs an id and a receiver of events")
	}
	life, end := context.WithCancel(context.Background())
	c := &session{
		store: s, notify: notify, stop: life.Done(), end: end, claims: make(map[string]*claim), votes: make(map[string]*vote),
		hot:   make(map[string]watchdog.Instant),
		steps: make(chan func()), idle: make(chan struct{}, 4*len(s.nodes)),
		limit: func(d time.Duration) (context.Context, context.CancelFunc) { return context.WithTimeout(life, d) },
	}
	for range s.nodes { // all of them first: events may come at once
		c.nodes = append(c.nodes, &node{looks: make(chan struct{}, 1), slack: s.slack})
	}
	for i, n := range s.nodes {
		opened, err := n.Store.Open(id, func(e store.Event) { c.event(i, e) })
		if err != nil {
			_ = c.Close(context.Background())
			return nil, err
		}
		c.nodes[i].Session = opened
	}
	for i := range s.nodes {
		c.run(func() { c.look(i) })
	}
	return c, nil
}

// usable returns why no request can be served.
func (s *session) usable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	return nil
}

// run runs a step that takes time. It reports false if the session is closed.
func (s *session) run(step func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.start(step)
	return true
}

// start gives a step to a goroutine that has nothing to do, or otherwise to a new one. The mutex is held.
func (s *session) start(step func()) {
	select {
	case s.steps <- step:
	default:
		s.background.Go(func() { s.work(step) })
	}
}

// work takes one step, and then others. A goroutine that has taken one has the stack for the next.
func (s *session) work(step func()) {
	for {
		step()
		select {
		case s.idle <- struct{}{}:
		default:
			return // enough have nothing to do
		}
		select {
		case step = <-s.steps:
			<-s.idle
		case <-s.stop:
			return
		}
	}
}

// release runs a release. Close waits somewhat until it was tried. It reports false if the session is closed.
func (s *session) release(step func(tried func())) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.releasing.Add(1)
	tried := sync.OnceFunc(s.releasing.Done)
	s.start(func() {
		defer tried()
		step(tried)
	})
	return true
}

// Lane returns the number of the first door, whose tickets can be compared. Each request has a goroutine for each node,
// and waits for no other.
func (s *session) Lane(key string) int { return s.store.order(key)[0] }

// enter returns the claim of a request, which may be new, when it has its turn. It is nil if the owner was withdrawn.
func (s *session) enter(ctx context.Context, r *store.AcquireRequest) (*claim, error) {
	for {
		c := s.claim(r)
		if c == nil {
			return nil, nil
		}
		select {
		case c.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		switch {
		case s.find(r.Owner) != c: // it was forgotten meanwhile
			c.leave()
		case !c.next(r):
			c.leave()
			return nil, nil
		default:
			return c, nil
		}
	}
}

// claim returns the claim of a request, or nil if the owner was withdrawn.
func (s *session) claim(r *store.AcquireRequest) *claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.claims[r.Owner]; c != nil || s.gone.Has(r.Owner) {
		return c
	}
	now := watchdog.Now()
	s.forgetIdle(now)
	c := &claim{
		session: s, key: r.Key, owner: r.Owner, shown: shown(r.Owner), order: s.store.order(r.Key), turn: make(chan struct{}, 1),
		votes: make([]*vote, len(s.nodes)), door: anyNode, touched: now,
	}
	s.claims[r.Owner] = c
	return c
}

// find returns the claim of an owner, or nil.
func (s *session) find(owner string) *claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claims[owner]
}

// forget forgets a claim that has nothing anywhere.
func (s *session) forget(c *claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.claims[c.owner] == c {
		delete(s.claims, c.owner)
	}
}

// forgetIdle forgets claims of leases that were lost and never unlocked. Each new claim looks at two, which the order of
// the map draws. The mutex is held, so a claim that is in use is left alone.
func (s *session) forgetIdle(now watchdog.Instant) {
	left := 2
	for owner, c := range s.claims {
		if c.mu.TryLock() {
			if c.isIdle(now) {
				delete(s.claims, owner)
				for _, v := range c.votes {
					if v != nil {
						delete(s.votes, v.id)
					}
				}
			}
			c.mu.Unlock()
		}
		if left--; left == 0 {
			return
		}
	}
}

// newID returns an owner id for a vote. Nobody can guess it who does not know the claim's.
func (s *session) newID(owner string, v *vote) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastID++
	id := owner + "." + strconv.FormatUint(s.lastID, 36)
	if v != nil {
		s.votes[id] = v
	}
	return id
}

// forgetVote is called when a vote has ended on its node.
func (s *session) forgetVote(v *vote) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.votes, v.id)
}

func (s *session) voteOf(id string) *vote {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.votes[id]
}

// wanted notes that others want a key.
func (s *session) wanted(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.hot) >= mostHot {
		clear(s.hot)
	}
	s.hot[key] = watchdog.Now().Add(hotFor)
}

// isWanted reports whether others have wanted a key lately.
func (s *session) isWanted(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, ok := s.hot[key]
	if ok && watchdog.Now() >= until {
		delete(s.hot, key)
		ok = false
	}
	return ok
}

// Close leaves all nodes. Releases that were not tried yet have half of the time before, and a second at most: a vote that is
// left behind keeps others waiting for a TTL. There is no error if a minority of nodes does not let go: it does later.
func (s *session) Close(ctx context.Context) error {
	s.mu.Lock()
	was := s.closed
	s.closed = true
	s.mu.Unlock()
	if was {
		return nil
	}
	released := make(chan struct{})
	go func() {
		s.releasing.Wait()
		close(released)
	}()
	limit := releaseLimit
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline)/2)
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-released:
	case <-timer.C:
	case <-ctx.Done():
	}
	s.end()
	errs := make([]error, len(s.nodes))
	var closing sync.WaitGroup
	for i, n := range s.nodes {
		if n.Session != nil { // otherwise Open has failed
			closing.Go(func() { errs[i] = n.Close(ctx) })
		}
	}
	closing.Wait()
	s.background.Wait()
	<-released
	if left := len(slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err != nil })); left >= s.store.majority() {
		return nil
	}
	return errors.Join(errs...)
}

// event handles what a node tells.
func (s *session) event(i int, e store.Event) {
	switch e.Kind {
	case store.EventDisconnected, store.EventResync:
		s.nodes[i].wake() // it may be dead
		s.notify(store.Event{Kind: e.Kind, OneLane: true, Lane: i})
	case store.EventGrant, store.EventWake:
		if v := s.voteOf(e.Owner); v != nil {
			s.offered(v, e.Kind == store.EventGrant)
		}
	case store.EventQueued, store.EventRequested, store.EventForced:
		if v := s.voteOf(e.Owner); v != nil {
			e.Owner = v.claim.owner
			s.notify(e)
		}
	}
}

// offered handles a message that a node has granted a vote, or may soon: its claim should ask (Q6). A claim that may
// not keep the vote gives it back.
func (s *session) offered(v *vote, granted bool) {
	c := v.claim
	c.mu.Lock()
	mayKeep := c.door == anyNode || c.door == v.node
	switch {
	case v.release != nil:
		c.mu.Unlock()
		return
	case granted && !mayKeep:
		c.endLocked(v)
	case granted:
		v.offered = true
	}
	leased := c.leased
	c.mu.Unlock()
	switch {
	case leased && granted:
		s.run(func() { s.retake(c, v.node) })
	case mayKeep && !leased:
		s.notify(store.Event{Kind: store.EventWake, Owner: c.owner})
	}
}
