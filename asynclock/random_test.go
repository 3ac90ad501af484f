// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

// Dice are a source of random numbers for several goroutines.
type dice struct {
	mu     sync.Mutex
	random *rand.Rand
}

func (d *dice) below(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.random.IntN(n)
}

func (d *dice) upTo(most time.Duration) time.Duration { return time.Duration(d.below(int(most))) }

// work is how long a holder is at work, which is long now and then.
func (d *dice) work() time.Duration {
	if d.below(10) == 0 {
		return d.upTo(20 * time.Second)
	}
	return d.upTo(400 * time.Millisecond)
}

func (d *dice) ttl() asynclock.LockOption {
	return asynclock.WithTTL(time.Duration(1+d.below(2)) * 10 * time.Second)
}

// Visitors come to the store at random, in a world of their own.
type visitors struct {
	*world
	*dice

	callers int           // of each of three clients
	pause   time.Duration // before each visit, at most
}

// atRandom tells a story for each seed. In some of them the network loses messages, or answers, or cuts clients off for
// a while. Each caller visits a dozen times, and in the end nothing is left.
func atRandom(t *testing.T, seeds, stream uint64, like visitors, begin func(all *visitors) (visit func(c *asynclock.Client))) {
	t.Helper()
	for seed := range seeds {
		scene(t, fmt.Sprint(seed), func(w *world) {
			all := like
			all.world, all.dice = w, &dice{random: rand.New(rand.NewPCG(seed, stream))}
			all.run(begin)
		})
	}
}

func (all *visitors) run(begin func(all *visitors) func(c *asynclock.Client)) {
	if all.below(2) == 0 {
		all.store.EveryEvent(func(asynclocktest.Event) bool { return all.below(4) == 0 }, asynclocktest.Drop)
	}
	if all.below(2) == 0 {
		all.store.Every(func(asynclocktest.Call) bool { return all.below(8) == 0 }, asynclocktest.LoseReply)
	}
	visit := begin(all)
	var callers, cutting sync.WaitGroup
	for range 3 {
		c := all.client()
		for range all.callers {
			callers.Go(func() {
				for range 12 {
					time.Sleep(all.upTo(all.pause))
					visit(c)
				}
			})
		}
	}
	cuts, stop := context.WithCancel(all.Context())
	if all.below(2) == 0 {
		cutting.Go(func() { all.cut(cuts) })
	}
	callers.Wait()
	stop()
	cutting.Wait()
	all.pass(time.Hour)
	all.wantUnused()
}

// cut cuts clients off from the store for a while, until ctx ends.
func (all *visitors) cut(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(all.upTo(20 * time.Second))
		mend := all.store.Cut(all.below(3))
		time.Sleep(all.upTo(30 * time.Second))
		mend()
	}
}

// late receives from a future whose context has ended, or will soon.
func (all *visitors) late(ctx context.Context, future func(ctx context.Context) <-chan asynclock.Result) (*asynclock.Lease, error) {
	short, cancel := context.WithTimeout(ctx, all.upTo(200*time.Millisecond))
	defer cancel()
	results := future(short)
	time.Sleep(all.upTo(300 * time.Millisecond))
	return (<-results).Lease()
}

// served reports whether there is no error. It fails the story for one that neither the network nor more explains.
func (all *visitors) served(err error, more ...error) bool {
	all.Helper()
	for _, expected := range append(more, nil, context.DeadlineExceeded, asynclock.ErrHeld, asynclock.ErrUnreachable) {
		if errors.Is(err, expected) {
			return err == nil
		}
	}
	all.Errorf("got error %v", err)
	return false
}

// unlocks ends a lease that may have been lost.
func (all *visitors) unlocks(l interface{ Unlock(context.Context) error }) {
	all.Helper()
	all.served(l.Unlock(all.Context()), store.ErrOutcomeUnknown, asynclock.ErrLost)
}

// A ledger knows who holds one key, from the callers themselves.
type ledger struct {
	*visitors

	mu      sync.Mutex
	readers map[*asynclock.Lease]bool
	writer  *asynclock.Lease
	last    int64 // the token of the last writer
}

// begins records a lease that its caller trusts.
func (g *ledger) begins(l *asynclock.Lease) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.writer != nil && g.writer.Valid(0) || l.Mode() == asynclock.Exclusive && g.lasting() > 0 {
		g.Errorf("lease %d of mode %v beside writer %v and %d readers", l.Token(), l.Mode(), g.writer != nil, g.lasting())
	}
	if l.Token() <= g.last {
		g.Errorf("token %d after the writer's token %d", l.Token(), g.last)
	}
	for r := range g.readers {
		if r.Valid(0) && r.Token() != l.Token() {
			g.Errorf("readers with tokens %d and %d at the same time", r.Token(), l.Token())
		}
	}
	if l.Mode() == asynclock.Exclusive {
		g.writer, g.last = l, l.Token()
		return
	}
	g.readers[l] = true
}

// lasting counts the readers whose leases last.
func (g *ledger) lasting() (n int) {
	for r := range g.readers {
		if r.Valid(0) {
			n++
		}
	}
	return n
}

// ends records that the caller is about to unlock.
func (g *ledger) ends(l *asynclock.Lease) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.readers, l)
	if g.writer == l {
		g.writer = nil
	}
}

// Readers and writers of several clients come at random over a network that loses messages and answers.
// No writer meets anybody, tokens rise from writer to writer, readers between two writers have one token,
// and everybody is served.
func TestReadersAndWritersAtRandom(t *testing.T) {
	atRandom(t, 40, 1, visitors{callers: 4, pause: 300 * time.Millisecond}, func(all *visitors) func(*asynclock.Client) {
		return (&ledger{visitors: all, readers: make(map[*asynclock.Lease]bool)}).visit
	})
}

// visit takes the key in one of the ways, uses it for a while, and unlocks it.
func (g *ledger) visit(c *asynclock.Client) {
	ctx, cancel := context.WithTimeout(g.Context(), time.Hour)
	defer cancel()
	ttl := g.ttl()
	var l *asynclock.Lease
	var err error
	switch g.below(8) {
	case 0, 1:
		l, err = c.Lock(ctx, "key", ttl)
	case 2:
		l, err = c.TryRLock(ctx, "key", ttl)
	case 3:
		l, err = (<-c.RLockChan(ctx, "key", ttl)).Lease()
	case 4:
		l, err = g.late(ctx, func(ctx context.Context) <-chan asynclock.Result { return c.RLockChan(ctx, "key", ttl) })
	default:
		l, err = c.RLock(ctx, "key", ttl)
	}
	if g.served(err) {
		g.begins(l)
		time.Sleep(g.work())
		g.ends(l)
		g.unlocks(l)
	}
}

// A pool knows who has how many permits, from the callers themselves.
type pool struct {
	*visitors

	mu     sync.Mutex
	leases map[*asynclock.Lease]bool
}

// begins records a lease that its caller trusts.
func (p *pool) begins(l *asynclock.Lease, limit int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	out, writers := l.Weight(), 0
	if l.Mode() == asynclock.Exclusive {
		writers = 1
	}
	for other := range p.leases {
		if !other.Valid(0) {
			continue
		}
		out += other.Weight()
		if other.Mode() == asynclock.Exclusive {
			writers++
		}
	}
	if out > limit || writers > 1 || writers == 1 && out > 0 {
		p.Errorf("%d permits of %d are out, and %d leases of all", out, limit, writers)
	}
	p.leases[l] = true
}

// ends records that the caller is about to unlock.
func (p *pool) ends(l *asynclock.Lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.leases, l)
}

// Callers of several clients take permits at random over a network that loses messages and answers. Never
// are more out than there are, and everybody is served.
func TestPermitsAtRandom(t *testing.T) {
	atRandom(t, 60, 2, visitors{callers: 5, pause: 200 * time.Millisecond}, func(all *visitors) func(*asynclock.Client) {
		return (&pool{visitors: all, leases: make(map[*asynclock.Lease]bool)}).visit
	})
}

// visit takes permits in one of the ways, uses them for a while, and gives them back.
func (p *pool) visit(c *asynclock.Client) {
	const limit = 4
	ctx, cancel := context.WithTimeout(p.Context(), time.Hour)
	defer cancel()
	options := []asynclock.LockOption{p.ttl()}
	switch p.below(12) {
	case 0:
		options = append(options, asynclock.WithMinHold(p.upTo(time.Second)+time.Millisecond))
	case 1:
		options = append(options, asynclock.WithMaxHold(p.upTo(time.Second)+time.Second))
	case 2:
		options = append(options, asynclock.WithRenewal(false))
	}
	s := semaphore(p, c, limit)
	n := 1 + p.below(3)*p.below(2)
	var l *asynclock.Lease
	var err error
	switch p.below(10) {
	case 0:
		l, err = c.Lock(ctx, "key")
	case 1:
		l, err = s.TryAcquire(ctx, n, options...)
	case 2, 3:
		l, err = (<-s.AcquireChan(ctx, n, options...)).Lease()
	case 4:
		l, err = p.late(ctx, func(ctx context.Context) <-chan asynclock.Result { return s.AcquireChan(ctx, n, options...) })
	default:
		l, err = s.Acquire(ctx, n, options...)
	}
	if p.served(err) {
		p.begins(l, limit)
		time.Sleep(p.work())
		p.ends(l)
		p.unlocks(l)
	}
}

// A board knows who has which of several keys, from the callers themselves.
type board struct {
	*visitors

	mu     sync.Mutex
	owners map[string]owned
	wholes int
}

// owned is a lease of a key, alone or as a part of a whole.
type owned struct {
	valid func() bool
	token int64
}

// begins records a lease of a key that its caller trusts.
func (b *board) begins(key string, token int64, valid func() bool) {
	if !valid() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	last := b.owners[key]
	if last.valid != nil && last.valid() {
		b.Errorf("%s: a lease with token %d begins while that with %d is trusted", key, token, last.token)
	}
	if token <= last.token {
		b.Errorf("%s: token %d after %d", key, token, last.token)
	}
	b.owners[key] = owned{valid, token}
}

// beginsAll records a lease of several keys.
func (b *board) beginsAll(m *asynclock.MultiLease) {
	for _, key := range m.Keys() {
		b.begins(key, m.Token(key), func() bool { return m.Valid(0) })
	}
}

// asks records a whole that is trusted although a part of it was over before.
func (b *board) asks(m *asynclock.MultiLease) {
	for _, key := range m.Keys() {
		part, _ := asynclock.LeaseFrom(m.Context(), key)
		if over := !part.Valid(0); over && m.Valid(0) {
			b.Errorf("%s: the whole is trusted, and its part is over: %v", key, part.Err())
		}
	}
}

// Callers of several clients take some of four keys at random, or one of them, over a network that loses
// messages and answers. No key has two leases that are trusted, alone or as a part, no whole outlives a part,
// and everybody is served.
func TestSeveralKeysAtRandom(t *testing.T) {
	atRandom(t, 30, 4, visitors{callers: 4, pause: 300 * time.Millisecond}, func(all *visitors) func(*asynclock.Client) {
		b := &board{visitors: all, owners: make(map[string]owned)}
		all.Cleanup(func() {
			if b.wholes == 0 {
				all.Error("nobody had several keys")
			}
		})
		return b.visit
	})
}

// visit takes keys in one of the ways, uses them for a while, and unlocks them.
func (b *board) visit(c *asynclock.Client) {
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	if b.below(4) == 0 { // gives up
		short, cancelShort := context.WithTimeout(ctx, b.upTo(2*time.Second))
		defer cancelShort()
		ctx = short
	}
	ttl := b.ttl()
	if b.below(4) == 0 {
		l, err := c.Lock(ctx, fmt.Sprint("key ", b.below(4)), ttl)
		if b.served(err) {
			b.begins(l.Key(), l.Token(), func() bool { return l.Valid(0) })
			time.Sleep(b.upTo(300 * time.Millisecond))
			b.unlocks(l)
		}
		return
	}
	var keys []string
	for range 2 + b.below(2) {
		keys = append(keys, fmt.Sprint("key ", b.below(4))) // in any order, and some twice
	}
	var m *asynclock.MultiLease
	var err error
	switch b.below(4) {
	case 0:
		m, err = c.TryLockAll(ctx, keys, ttl)
	case 1:
		m, err = (<-c.LockAllChan(ctx, keys, ttl)).Lease()
	default:
		m, err = c.LockAll(ctx, keys, ttl)
	}
	if b.served(err, store.ErrOutcomeUnknown, asynclock.ErrLost) {
		b.beginsAll(m)
		b.holds(m)
	}
}

// holds has several keys for a while, and unlocks them.
func (b *board) holds(m *asynclock.MultiLease) {
	b.mu.Lock()
	b.wholes++
	b.mu.Unlock()
	part := b.work() / 4
	for range 4 {
		time.Sleep(part)
		b.asks(m)
	}
	b.unlocks(m)
}
