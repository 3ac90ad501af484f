// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Times that follow from the default TTL, as docs/design.md derives them.
const (
	ttl       = asynclock.DefaultTTL
	heartbeat = ttl / 10
	grantTTL  = 3 * heartbeat
	// patience is how long a waiter puts up with a store that fails.
	patience = ttl / 3
	// callTimeout is how long a waiter's request may take.
	callTimeout = time.Second // of the first one, twice that of the next
)

// trusted is how long a lease is trusted from the sending of the request that
// set its TTL.
func trusted(ttl time.Duration) time.Duration { return ttl - ttl/100 - ttl/10 - 5*time.Millisecond }

// A world is one story's store, in memory and behind a bad network. Clients are
// numbered in the order in which they are made.
type world struct {
	*testing.T
	store  *asynclocktest.Store
	memory *memstore.Store

	clients int // made so far
}

// story tells a story in a bubble, where time costs nothing.
func story(t *testing.T, tell func(w *world)) {
	t.Helper()
	stories(t, 1, tell)
}

// scene is a story among others of a test.
func scene(t *testing.T, name string, tell func(w *world)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { story(t, tell) })
}

// stories tells a story n times, each time in a bubble and a world of its own,
// since what it is about depends on who is faster.
func stories(t *testing.T, n int, tell func(w *world)) {
	t.Helper()
	t.Parallel()
	for range n {
		synctest.Test(t, func(t *testing.T) {
			memory := memstore.New()
			tell(&world{T: t, store: asynclocktest.Wrap(memory), memory: memory})
		})
	}
}

// client makes the next client, which is closed with the story.
func (w *world) client(options ...asynclock.ClientOption) *asynclock.Client {
	w.Helper()
	w.clients++
	return w.clientOf(w.store, options...)
}

// clientOf makes a client of another store, which is closed with the story.
func (w *world) clientOf(st store.Store, options ...asynclock.ClientOption) *asynclock.Client {
	w.Helper()
	return w.newClient(st, isWatched(w.Name(), w.clients), options...)
}

// newClient makes a client of a store, with a witness or without one. It is closed with the story.
func (w *world) newClient(st store.Store, watched bool, options ...asynclock.ClientOption) *asynclock.Client {
	w.Helper()
	seen := newWitness(w)
	if watched {
		options = append(options, asynclock.WithHooks(seen.hooks()))
	}
	c, err := asynclock.New(st, append([]asynclock.ClientOption{asynclock.WithoutLogger(), asynclock.WithLeakDetection(false)}, options...)...)
	if err != nil {
		w.Fatal(err)
	}
	seen.client = c
	w.Cleanup(func() {
		w.wantSums(c)
		abandon(c)
		synctest.Wait() // until calls have returned, which count why they failed
		w.wantSums(c)
		w.wantAllOver(c)
		if watched {
			seen.wantAllTold()
		}
	})
	return c
}

// abandon closes a client without waiting for its leases.
func abandon(c *asynclock.Client) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = c.Close(ctx) // says that leases were held, as may be
}

// session joins the store behind the bad network, as a client of which no story
// is told.
func (w *world) session() store.Session {
	w.Helper()
	s, err := w.memory.Open("stranger", func(store.Event) {})
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// inspect returns what the store has of key.
func (w *world) inspect(key string) asynclock.Info {
	w.Helper()
	info, err := w.session().Inspect(w.Context(), key)
	if err != nil {
		w.Fatal(err)
	}
	return info
}

// wantUnused fails the story if the store has anything left.
func (w *world) wantUnused() {
	w.Helper()
	for info, err := range w.session().List(w.Context(), "") {
		w.Errorf("the store still has %+v (error %v), want nothing", info, err)
	}
}

// calls counts the requests so far that match.
func (w *world) calls(m asynclocktest.Match) int { return len(w.store.Calls(m)) }

// wantCalls fails the story unless so many requests so far match.
func (w *world) wantCalls(m asynclocktest.Match, want int) {
	w.Helper()
	if got := w.calls(m); got != want {
		w.Errorf("requests: got %d, want %d", got, want)
	}
}

// wait lets everything happen that can without time passing.
func (w *world) wait() { synctest.Wait() }

// pass lets time pass, and then everything happen that is due.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// lock takes a key that can be had.
func lock(tb testing.TB, c *asynclock.Client, key string, options ...asynclock.LockOption) *asynclock.Lease {
	tb.Helper()
	l, err := c.Lock(context.Background(), key, options...)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// claim takes the next lease of a channel, which can be had.
func claim(tb testing.TB, results <-chan asynclock.Result) *asynclock.Lease {
	tb.Helper()
	l, err := (<-results).Lease()
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// unlock ends a lease that has not ended.
func unlock(tb testing.TB, l *asynclock.Lease) {
	tb.Helper()
	if err := l.Unlock(context.Background()); err != nil {
		tb.Fatal(err)
	}
}

// A pendingOf is a call in a goroutine of its own, which returns an L.
type pendingOf[L any] struct {
	w     *world
	done  chan struct{}
	lease L
	err   error
	at    time.Time // when it was done
}

// A pending acquisition is a Lock, or the like.
type pending = pendingOf[*asynclock.Lease]

// begin makes the call, and returns when it waits or is over.
func begin[L any](w *world, call func() (L, error)) *pendingOf[L] {
	p := &pendingOf[L]{w: w, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.lease, p.err = call()
		p.at = time.Now()
	}()
	w.wait()
	return p
}

// ask begins to wait for a key, and returns when it waits.
func (w *world) ask(ctx context.Context, c *asynclock.Client, key string, options ...asynclock.LockOption) *pending {
	return w.askBy(ctx, c.Lock, key, options...)
}

// askBy is ask by another call.
func (w *world) askBy(ctx context.Context, call acquire, key string, options ...asynclock.LockOption) *pending {
	return begin(w, func() (*asynclock.Lease, error) { return call(ctx, key, options...) })
}

// An acquire is a call that takes a key, as Lock does.
type acquire func(ctx context.Context, key string, options ...asynclock.LockOption) (*asynclock.Lease, error)

// waits fails the story if the acquisition is over.
func (p *pendingOf[L]) waits() {
	p.w.Helper()
	p.w.wait()
	select {
	case <-p.done:
		p.w.Fatalf("the waiter has lease %v, error %v; want it to wait", p.lease, p.err)
	default:
	}
}

// has returns the lease, which the waiter must have by now.
func (p *pendingOf[L]) has() L {
	p.w.Helper()
	if err := p.ended(); err != nil {
		p.w.Fatal(err)
	}
	return p.lease
}

// ended returns the error of an acquisition that must be over by now.
func (p *pendingOf[L]) ended() error {
	p.w.Helper()
	p.w.wait()
	select {
	case <-p.done:
		return p.err
	default:
		p.w.Fatal("the waiter still waits")
		return nil
	}
}

// get returns the lease when the waiter has it.
func (p *pendingOf[L]) get() L {
	p.w.Helper()
	<-p.done
	return p.has()
}

// errOf is the error of a call that also returns something else.
func errOf[T any](_ T, err error) error { return err }

// wantError fails the test unless err is each of targets. Nil is the target of no error.
func wantError(tb testing.TB, err error, targets ...error) {
	tb.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			tb.Errorf("got error %v, want %v", err, target)
		}
	}
}

// wantValid fails the test unless the lease lasts.
func wantValid(tb testing.TB, l *asynclock.Lease) {
	tb.Helper()
	if err := l.Err(); err != nil || !l.Valid(0) {
		tb.Errorf("the lease of %q: got valid %v, error %v; want it to last", l.Key(), l.Valid(0), err)
	}
}

// wantTime fails the test unless got is want, which in a bubble is exact.
func wantTime(tb testing.TB, what string, got, want time.Time) {
	tb.Helper()
	if !got.Equal(want) {
		tb.Errorf("%s: got %v, want %v", what, since(got), since(want))
	}
}

// since is how long ago t was, or how far away with a minus, rounded for people.
func since(t time.Time) time.Duration { return -time.Until(t).Round(time.Microsecond) }

// wantOp fails the test unless err says what was done to which key.
func wantOp(tb testing.TB, err error, op, key string) {
	tb.Helper()
	var e *asynclock.Error
	if !errors.As(err, &e) || e.Op != op || e.Key != key {
		tb.Errorf("got error %#v, want an *Error of %q on %q", err, op, key)
	}
}

// hasNow returns the lease, if the waiter has it by now.
func (p *pendingOf[L]) hasNow() (lease L, has bool) {
	p.w.Helper()
	p.w.wait()
	select {
	case <-p.done:
		return p.lease, p.err == nil
	default:
		return lease, false
	}
}

// An altered store is another one, except for what a test alters. For faults of single requests and events
// there is asynclocktest.
type altered struct {
	store.Store

	features func(*store.Features) // nil: as they are, and so for all below
	refuses  error                 // the answer to who joins
	bare     bool                  // its sessions have no methods but those that each store needs

	// These get whole batches, before the store. Their error is the answer to each request of the batch.
	acquire func(context.Context, []store.AcquireRequest) error
	renew   func(context.Context, []store.RenewRequest) error
	release func(context.Context, []store.ReleaseRequest) error

	acquired func(*store.AcquireReply)
	renewed  func(*store.RenewReply)
	released func(*store.ReleaseReply)
	lane     func(key string) int
	listed   func(store.Info) (store.Info, error)
	spelled  func(key string) string
	shared   func(key string) error
	observe  func(on bool) // before the store
	mute     bool          // it sends no events
}

func (a altered) Features() store.Features {
	f := a.Store.Features()
	if a.features != nil {
		a.features(&f)
	}
	return f
}

func (a altered) Open(id string, events func(store.Event)) (store.Session, error) {
	if a.mute {
		events = func(store.Event) {}
	}
	if a.refuses != nil {
		return nil, a.refuses
	}
	s, err := a.Store.Open(id, events)
	if a.bare || err != nil {
		return struct{ store.Session }{s}, err
	}
	return alteredSession{s.(wholeSession), a}, nil //nolint:forcetypeassert // what altered is made of has all
}

// A wholeSession has all that a store may do.
type wholeSession interface {
	store.ObserveSession
	store.LimitSession
}

type alteredSession struct {
	wholeSession

	by altered
}

func (s alteredSession) Lane(key string) int {
	if s.by.lane != nil {
		return s.by.lane(key)
	}
	return s.wholeSession.Lane(key)
}

func (s alteredSession) Spell(key string) string {
	if s.by.spelled == nil {
		return key
	}
	return s.by.spelled(key)
}

func (s alteredSession) CheckShared(key string) error {
	if s.by.shared == nil {
		return nil
	}
	return s.by.shared(key)
}

func (s alteredSession) Observe(key string, on bool) error {
	if s.by.observe != nil {
		s.by.observe(on)
	}
	return s.wholeSession.Observe(key, on)
}

func (s alteredSession) Acquire(ctx context.Context, batch []store.AcquireRequest) []store.AcquireReply {
	return alter(ctx, batch, s.by.acquire, s.wholeSession.Acquire, s.by.acquired,
		func(err error) store.AcquireReply { return store.AcquireReply{Err: err} })
}

func (s alteredSession) Renew(ctx context.Context, batch []store.RenewRequest) []store.RenewReply {
	return alter(ctx, batch, s.by.renew, s.wholeSession.Renew, s.by.renewed,
		func(err error) store.RenewReply { return store.RenewReply{Err: err} })
}

func (s alteredSession) Release(ctx context.Context, batch []store.ReleaseRequest) []store.ReleaseReply {
	return alter(ctx, batch, s.by.release, s.wholeSession.Release, s.by.released,
		func(err error) store.ReleaseReply { return store.ReleaseReply{Err: err} })
}

func (s alteredSession) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	if s.by.listed == nil {
		return s.wholeSession.List(ctx, prefix)
	}
	return func(yield func(store.Info, error) bool) {
		for info, err := range s.wholeSession.List(ctx, prefix) {
			if err == nil {
				info, err = s.by.listed(info)
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// alter makes one call to the store, with what is altered before and after it.
func alter[Q, R any](
	ctx context.Context, batch []Q, before func(context.Context, []Q) error,
	do func(context.Context, []Q) []R, after func(*R), failed func(error) R,
) []R {
	if before != nil {
		if err := before(ctx, batch); err != nil {
			replies := make([]R, len(batch))
			for i := range replies {
				replies[i] = failed(err)
			}
			return replies
		}
	}
	replies := do(ctx, batch)
	for i := range replies {
		if after != nil {
			after(&replies[i])
		}
	}
	return replies
}

// lanes has the store make a lane for each first letter of a key.
func lanes(st store.Store) altered {
	return altered{Store: st, lane: func(key string) int { return int(key[0]) }}
}

// without has the store lack what change takes from it.
func without(st store.Store, change func(*store.Features)) altered {
	return altered{Store: st, features: change}
}

// graceful has the store say "wait" because of its grace.
func graceful(st store.Store, grace time.Duration) altered {
	return altered{Store: st, acquired: func(r *store.AcquireReply) {
		if r.Status == store.Waiting {
			r.Grace, r.Remaining, r.Holder, r.HolderToken = grace, grace, "", 0
		}
	}}
}

// promising has the store answer each request that it will tell who wants the key, or that it will
// not, whatever is asked of it and comes of it.
func promising(st store.Store, able, watched bool) altered {
	return altered{
		Store:    st,
		features: func(f *store.Features) { f.Retention = able },
		acquired: func(r *store.AcquireReply) { r.WillNotify = watched },
	}
}

// Sizes are how many requests there were in each call to a store.
type sizes struct {
	mu                           sync.Mutex
	acquires, renewals, releases []int
}

// counted has the store note the sizes of its calls.
func counted(st store.Store) (altered, *sizes) {
	s := new(sizes)
	note := func(to *[]int, n int) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		*to = append(*to, n)
		return nil
	}
	return altered{
		Store:   st,
		acquire: func(_ context.Context, b []store.AcquireRequest) error { return note(&s.acquires, len(b)) },
		renew:   func(_ context.Context, b []store.RenewRequest) error { return note(&s.renewals, len(b)) },
		release: func(_ context.Context, b []store.ReleaseRequest) error { return note(&s.releases, len(b)) },
	}, s
}

// A closable store notes how often it is closed.
type closable struct {
	store.Store

	closed int
	err    error // of Close
}

func (s *closable) Close() error {
	s.closed++
	return s.err
}

// A brake holds up a client's watchdog as the system holds up a process: what
// is due is not done in time. The store's sessions do not return from Lane, which
// the watchdog asks before it sends a renewal. Events still arrive, and callers
// can still ask.
type brake struct {
	client  *asynclock.Client
	number  int
	on      atomic.Pointer[string] // the key at whose renewal to stand still
	stopped chan struct{}          // receives when the watchdog does
	moving  chan struct{}          // closed when it may go on
}

// braked makes the next client, with a brake.
func (w *world) braked(options ...asynclock.ClientOption) (*asynclock.Client, *brake) {
	w.Helper()
	b := &brake{number: w.clients, stopped: make(chan struct{})}
	w.clients++
	// A witness would wait for the brake, under a mutex.
	b.client = w.newClient(altered{Store: w.store, lane: b.lane}, false, options...)
	return b.client, b
}

func (b *brake) lane(key string) int {
	if on := b.on.Load(); on != nil && *on == key && b.on.CompareAndSwap(on, nil) {
		b.stopped <- struct{}{}
		<-b.moving
	}
	return 0
}

// pull makes the watchdog stand still until the returned function is called. It
// takes some 30 ms, until a renewal is due for that.
func (b *brake) pull(w *world) (goOn func()) {
	w.Helper()
	b.moving = make(chan struct{})
	goOn = sync.OnceFunc(func() { close(b.moving) })
	w.Cleanup(goOn)
	key := b.ownShard(w)
	b.on.Store(&key)
	<-b.stopped
	return goOn
}

// ownShard locks a key that shares its part of the client, and so a mutex, with
// no other key so far: an owner's last two digits say which part.
func (b *brake) ownShard(w *world) (key string) {
	w.Helper()
	shards := func(m asynclocktest.Match) map[string]bool {
		found := make(map[string]bool)
		for _, c := range w.store.Calls(m.From(b.number)) {
			found[c.Owner[len(c.Owner)-2:]] = true
		}
		return found
	}
	others := shards(asynclocktest.Acquire.Any)
	for i := 0; ; i++ {
		key = fmt.Sprint("brake ", i)
		l := lock(w, b.client, key, asynclock.WithTTL(asynclock.MinTTL))
		for shard := range shards(asynclocktest.Acquire.On(key)) {
			if !others[shard] {
				return key
			}
		}
		unlock(w, l)
	}
}
