// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

var (
	simulations = flag.Int("simulations", 50, "how many worlds TestSimulation makes")
	firstSeed   = flag.Uint64("seed", 1, "the seed of the first world of TestSimulation")
)

// TestSimulation lets many workers in several clients take a few keys in every
// way there is, over a network that gets worse and worse and then well again,
// while clients are cut off and stand still. In no world two leases of a key are
// trusted at a time; tokens rise; everyone has the key or an error in time; and
// nothing is left in the end.
//
// The seed decides what is done and what goes wrong, but not who is faster, so
// a world is not the same twice.
func TestSimulation(t *testing.T) {
	const lanes = 4
	for lane := range uint64(lanes) {
		t.Run(fmt.Sprint(lane), func(t *testing.T) {
			t.Parallel()
			for seed := *firstSeed + lane; seed < *firstSeed+uint64(*simulations) && !t.Failed(); seed += lanes {
				synctest.Test(t, func(t *testing.T) { simulate(t, seed) })
			}
		})
	}
}

const (
	troubled = 40 * time.Second // how long the network is bad
	busy     = 60 * time.Second // how long workers begin something new
	longest  = 5 * time.Second  // how long a worker holds a key
	patient  = 5 * time.Minute  // how long a worker waits that is sure of its turn
)

// A simulation is one world and what is known of its leases.
type simulation struct {
	*world
	clients []*asynclock.Client
	brake   *brake      // of the last client
	pulled  atomic.Bool // whether the brake was pulled
	keys    []string
	start   time.Time

	mu       sync.Mutex
	dice     *rand.Rand
	holdings map[string][]*holding // of each key, in the order of their claims
	served   int
}

// A holding is a lease and what its holder has done with it.
type holding struct {
	*asynclock.Lease
	done     <-chan struct{}
	unlocked bool // or is about to
}

// trusted says whether the holder has reason to believe in its lease. It asks
// nothing that would make the client look at the clock.
func (h *holding) trusted() bool {
	select {
	case <-h.done:
		return false
	default:
		return !h.unlocked && time.Now().Before(h.Deadline())
	}
}

func simulate(t *testing.T, seed uint64) {
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	memory := memstore.New()
	s := &simulation{
		world:    &world{T: t, store: asynclocktest.Wrap(memory), memory: memory},
		dice:     rand.New(rand.NewPCG(seed, 0)),
		holdings: make(map[string][]*holding),
		start:    time.Now(),
	}
	for range s.roll(4) + 1 {
		s.clients = append(s.clients, s.client(s.retention()))
	}
	paused, brake := s.braked(s.retention())
	s.clients, s.brake = append(s.clients, paused), brake
	for i := range len(s.clients) + s.roll(3) + 1 { // each client has one that it likes
		s.keys = append(s.keys, fmt.Sprint("key ", i))
		unlock(t, lock(t, paused, s.keys[i], asynclock.WithRetention(0))) // so that the brake knows of the key
	}
	s.trouble()

	var workers sync.WaitGroup
	for i, c := range s.clients {
		for range s.roll(6) + 1 {
			dice := rand.New(rand.NewPCG(seed, uint64(s.roll(1<<30))))
			workers.Go(func() { (&worker{s, c, s.keys[i], dice}).work() })
		}
	}
	workers.Wait()
	if took := time.Since(s.start); took > busy+patient {
		t.Errorf("the workers were done after %v, want all served or refused within %v of %v", took, patient, busy)
	}
	for i, c := range s.clients {
		before := time.Now()
		if err := c.Close(context.Background()); err != nil {
			t.Errorf("close of client %d: %v", i, err)
		}
		if took := time.Since(before); took > time.Minute {
			t.Errorf("close of client %d took %v", i, took)
		}
	}
	s.pass(2 * ttl)
	s.wantUnused()
	if s.served == 0 {
		t.Error("nobody was served")
	}
}

func (s *simulation) roll(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dice.IntN(n)
}

// retention is none in every other client, and else is longer or shorter than the time
// for which keys are idle.
func (s *simulation) retention() asynclock.LockOption {
	return asynclock.WithRetention([]time.Duration{0, 0, 10 * time.Millisecond, time.Second, time.Minute}[s.roll(5)])
}

// upTo is a random time below d.
func (s *simulation) upTo(d time.Duration) time.Duration { return time.Duration(s.roll(int(d))) }

// trouble makes the network bad, cuts clients off, and lets one stand still.
func (s *simulation) trouble() {
	ours := func(c asynclocktest.Call) bool { return c.Key != "" && c.Key[0] == 'k' } // not the brake's
	calm := s.store.Every(ours, s.badRoad)
	deliver := s.store.EveryEvent(asynclocktest.AnyEvent, s.badPost)
	time.AfterFunc(troubled, func() {
		calm()
		deliver()
	})
	for i := range s.clients {
		for range s.roll(3) {
			fault := []asynclocktest.Fault{asynclocktest.Hang, asynclocktest.Refuse, asynclocktest.Silence}[s.roll(3)]
			time.AfterFunc(s.upTo(troubled), func() {
				join := s.store.Every(asynclocktest.Match(ours).From(i), fault)
				hear := s.store.EveryEvent(asynclocktest.EventMatch(asynclocktest.AnyEvent).For(i), asynclocktest.Drop)
				time.AfterFunc(s.upTo(troubled/3), func() {
					join()
					hear()
					if i < len(s.clients)-1 { // the one that stands still reads nothing
						s.store.Tell(i, store.Event{Kind: store.EventResync})
					}
				})
			})
		}
	}
	if s.roll(2) == 0 {
		time.AfterFunc(time.Second+s.upTo(troubled/2), func() {
			s.pulled.Store(true)
			goOn := s.brake.pull(s.world)
			time.Sleep(time.Second + s.upTo(2*ttl))
			goOn()
		})
	}
}

// badRoad is what becomes of a request.
func (s *simulation) badRoad(ctx context.Context, carry func()) error {
	fault := asynclocktest.Slow(s.upTo(2*time.Millisecond), s.upTo(2*time.Millisecond))
	switch n := s.roll(100); {
	case n < 3:
		fault = asynclocktest.Refuse
	case n < 6:
		fault = asynclocktest.LoseReply
	case n < 9:
		fault = asynclocktest.Silence
	case n < 12:
		fault = asynclocktest.Hang
	case n < 18:
		fault = asynclocktest.Slow(s.upTo(3*time.Second), s.upTo(3*time.Second))
	case n < 20:
		fault = asynclocktest.Again(s.upTo(3 * time.Second))
	}
	return fault(ctx, carry)
}

// badPost is what becomes of an event.
func (s *simulation) badPost(deliver func()) {
	switch n := s.roll(100); {
	case n < 10:
		asynclocktest.Drop(deliver)
	case n < 15:
		asynclocktest.Repeat(deliver)
	case n < 30:
		asynclocktest.Delay(s.upTo(time.Minute))(deliver)
	default:
		asynclocktest.Delay(s.upTo(2 * time.Millisecond))(deliver)
	}
}

// enter notes a claimed lease, which joined another one or not. Nobody else may
// believe in one of the same key. One that joined lasts as long as the other, so
// that is the one to look at from then on. And one that has ended, as by its maximum
// hold, before its holder came by it, whose own request was slow while a message
// granted the key, was nobody's in the meantime.
func (s *simulation) enter(l *asynclock.Lease, joined bool) *holding {
	h := &holding{Lease: l, done: l.Done(), unlocked: joined}
	over := l.Err() != nil || !time.Now().Before(l.Deadline())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served++
	for _, other := range s.holdings[l.Key()] {
		switch {
		case over, joined && other.Token() == l.Token():
		case other.Token() >= l.Token():
			s.Errorf("%q: token %d came after %d", l.Key(), l.Token(), other.Token())
		case other.trusted():
			s.Errorf("%q: the lease with token %d began while that with %d was trusted for %v more",
				l.Key(), l.Token(), other.Token(), time.Until(other.Deadline()))
		}
	}
	s.holdings[l.Key()] = append(s.holdings[l.Key()], h)
	return h
}

// leave notes that the holder is about to unlock, and reports whether it had
// reason to believe in its lease until then.
func (s *simulation) leave(h *holding) (trusted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	trusted = h.trusted()
	h.unlocked = true
	return trusted
}

// A worker takes keys, one after the other.
type worker struct {
	*simulation
	client *asynclock.Client
	likes  string // the key that it takes most often
	dice   *rand.Rand
}

func (w *worker) roll(n int) int                          { return w.dice.IntN(n) }
func (w *worker) upTo(d time.Duration) time.Duration      { return time.Duration(w.roll(int(d))) }
func (w *worker) oneOf(ds ...time.Duration) time.Duration { return ds[w.roll(len(ds))] }

func (w *worker) work() {
	for time.Since(w.start) < busy {
		key := w.likes
		if w.roll(3) == 0 {
			key = w.keys[w.roll(len(w.keys))]
		}
		w.once(key, w.options())
		time.Sleep(time.Millisecond + w.upTo(w.oneOf(time.Millisecond, time.Second)))
	}
}

// options usually returns the usual options.
func (w *worker) options() (options []asynclock.LockOption) {
	if w.roll(3) == 0 {
		options = append(options, asynclock.WithTTL(w.oneOf(asynclock.MinTTL, time.Second, 5*time.Second, ttl)))
	}
	switch w.roll(10) {
	case 0:
		options = append(options, asynclock.WithMaxHold(w.oneOf(asynclock.MinTTL, time.Second, 3*time.Second)))
	case 1:
		options = append(options, asynclock.WithMinHold(w.upTo(time.Second)))
	case 2:
		options = append(options, asynclock.WithRenewal(false))
	}
	return options
}

// once takes the key in one way or another, and holds it for a while.
func (w *worker) once(key string, options []asynclock.LockOption) {
	limit := w.upTo(w.oneOf(10*time.Millisecond, time.Second, 20*time.Second, 40*time.Second))
	if w.roll(8) == 0 {
		limit = patient
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	before := time.Now()
	var l *asynclock.Lease
	var err error
	switch w.roll(6) {
	case 0:
		l, err = w.client.TryLock(ctx, key, options...)
		w.checkError(err, asynclock.ErrHeld)
		if w.client != w.brake.client || !w.pulled.Load() { // else the watchdog, which makes the second try, may stand still
			limit = min(limit, 5*callTimeout) // it may try twice, with a pause, after two other requests of its client
		}
		w.checkTime("TryLock", before, limit)
	case 1:
		l, err = w.claim(w.client.LockChan(ctx, key, options...))
		w.checkError(err, asynclock.ErrLost) // it was looked at too late
	case 2:
		w.client.LockChan(ctx, key, options...) // and forgets it
		return
	default:
		l, err = w.client.Lock(ctx, key, options...)
		w.checkError(err)
		w.checkTime("Lock", before, limit)
		if limit == patient && errors.Is(err, context.DeadlineExceeded) {
			w.Errorf("waited for %q in vain for %v", key, limit)
		}
	}
	if err == nil {
		w.hold(l)
	}
}

// claim looks at a future's result sooner or later.
func (w *worker) claim(future <-chan asynclock.Result) (*asynclock.Lease, error) {
	result := <-future
	if w.roll(3) == 0 {
		time.Sleep(w.upTo(w.oneOf(time.Second, ttl)))
	}
	return result.Lease()
}

// checkError fails the simulation for an error that nothing here explains.
func (w *worker) checkError(err error, expected ...error) {
	expected = append(expected, nil, context.DeadlineExceeded, asynclock.ErrUnreachable, asynclock.ErrOutcomeUnknown)
	for _, e := range expected {
		if errors.Is(err, e) {
			return
		}
	}
	w.Errorf("got error %v", err)
}

// checkTime fails the simulation if what began before took longer than it may.
func (w *worker) checkTime(what string, before time.Time, limit time.Duration) {
	if took := time.Since(before); took > limit {
		w.Errorf("%s took %v, want at most %v", what, took, limit)
	}
}

// hold works under a lease and gives it back.
func (w *worker) hold(l *asynclock.Lease) {
	h := w.enter(l, false)
	until := time.NewTimer(w.upTo(w.oneOf(time.Millisecond, time.Second, longest)))
	defer until.Stop()
	if w.roll(10) == 0 {
		joined, err := w.client.Lock(l.Context(), l.Key())
		if err == nil && joined.Token() == l.Token() {
			defer joined.Unlock(context.Background())
			w.enter(joined, true)
		}
	}
	if w.roll(5) == 0 {
		_ = l.Renew(context.Background(), w.oneOf(asynclock.MinTTL, ttl)) // fails, as the network has it
	}
	select {
	case <-until.C:
	case <-h.done:
		if early := time.Until(l.Deadline()); early > 0 {
			w.Errorf("%q: lost %v before its trust deadline: %v", l.Key(), early, l.Err())
		}
	}
	trusted := w.leave(h)
	before := time.Now()
	var err error
	if w.roll(3) == 0 {
		err = <-l.UnlockChan(context.Background())
	} else {
		err = l.Unlock(context.Background())
		w.checkTime("Unlock", before, 12*time.Second)
	}
	switch lost := errors.Is(err, asynclock.ErrLost); {
	case lost && trusted:
		w.Errorf("%q: a trusted lease was lost: %v", l.Key(), err)
	case !trusted && !lost:
		w.Errorf("%q: unlocking a lost lease: got error %v", l.Key(), err)
	case !lost:
		w.checkError(err)
	}
}
