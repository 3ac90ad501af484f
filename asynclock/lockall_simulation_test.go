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

// A board knows who has which of several keys, from the callers themselves.
type board struct {
	mu     sync.Mutex
	owners map[string]owned
	wholes int
	wrong  []string
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
		b.wrong = append(b.wrong, fmt.Sprintf("%s: a lease with token %d begins while that with %d is trusted", key, token, last.token))
	}
	if token <= last.token {
		b.wrong = append(b.wrong, fmt.Sprintf("%s: token %d after %d", key, token, last.token))
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
			b.mu.Lock()
			b.wrong = append(b.wrong, fmt.Sprintf("%s: the whole is trusted, and its part is over: %v", key, part.Err()))
			b.mu.Unlock()
		}
	}
}

// Callers of several clients take some of four keys at random, or one of them, over a network that loses
// messages and answers. No key has two leases that are trusted, alone or as a part, no whole outlives a part,
// and everybody is served.
func TestSeveralKeysAtRandom(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			story(t, func(w *world) { lockSeveralAtRandom(w, &dice{random: rand.New(rand.NewPCG(seed, 4))}) })
		})
	}
}

func lockSeveralAtRandom(w *world, random *dice) {
	if random.below(2) == 0 {
		w.store.EveryEvent(func(asynclocktest.Event) bool { return random.below(4) == 0 }, asynclocktest.Drop)
	}
	if random.below(2) == 0 {
		w.store.Every(func(asynclocktest.Call) bool { return random.below(8) == 0 }, asynclocktest.LoseReply)
	}
	b := &board{owners: make(map[string]owned)}
	var all sync.WaitGroup
	for range 3 {
		c := w.client()
		for range 4 {
			all.Go(func() {
				for range 12 {
					time.Sleep(random.upTo(300 * time.Millisecond))
					b.visit(w, c, random)
				}
			})
		}
	}
	cuts, stop := context.WithCancel(w.Context())
	var cutting sync.WaitGroup
	if random.below(2) == 0 {
		cutting.Go(func() { cutAtRandom(cuts, w, random) })
	}
	all.Wait()
	stop()
	cutting.Wait()
	for _, wrong := range b.wrong {
		w.Error(wrong)
	}
	if b.wholes == 0 {
		w.Error("nobody had several keys")
	}
	w.pass(time.Hour)
	w.wantUnused()
}

// visit takes keys in one of the ways, uses them for a while, and unlocks them.
func (b *board) visit(w *world, c *asynclock.Client, random *dice) {
	ctx, cancel := context.WithTimeout(w.Context(), time.Hour)
	defer cancel()
	if random.below(4) == 0 { // gives up
		short, cancelShort := context.WithTimeout(ctx, random.upTo(2*time.Second))
		defer cancelShort()
		ctx = short
	}
	ttl := asynclock.WithTTL(time.Duration(1+random.below(2)) * 10 * time.Second)
	if random.below(4) == 0 {
		l, err := c.Lock(ctx, fmt.Sprint("key ", random.below(4)), ttl)
		if w.servedOrRefused(err) {
			b.begins(l.Key(), l.Token(), func() bool { return l.Valid(0) })
			time.Sleep(random.upTo(300 * time.Millisecond))
			w.servedOrRefused(l.Unlock(w.Context()))
		}
		return
	}
	var keys []string
	for range 2 + random.below(2) {
		keys = append(keys, fmt.Sprint("key ", random.below(4))) // in any order, and some twice
	}
	var m *asynclock.MultiLease
	var err error
	switch random.below(4) {
	case 0:
		m, err = c.TryLockAll(ctx, keys, ttl)
	case 1:
		m, err = (<-c.LockAllChan(ctx, keys, ttl)).Lease()
	default:
		m, err = c.LockAll(ctx, keys, ttl)
	}
	if w.servedOrRefused(err) {
		b.beginsAll(m)
		b.work(w, m, random)
	}
}

// work holds several keys for a while, and mostly gives them back.
func (b *board) work(w *world, m *asynclock.MultiLease, random *dice) {
	b.mu.Lock()
	b.wholes++
	b.mu.Unlock()
	most := 400 * time.Millisecond
	if random.below(10) == 0 {
		most = 20 * time.Second
	}
	for range 4 {
		time.Sleep(random.upTo(most / 4))
		b.asks(m)
	}
	w.servedOrRefused(m.Unlock(w.Context()))
}

// servedOrRefused reports whether there is no error, and fails the test for one that nothing here explains.
func (w *world) servedOrRefused(err error) bool {
	w.Helper()
	for _, expected := range []error{
		nil, context.DeadlineExceeded, asynclock.ErrHeld, asynclock.ErrUnreachable, store.ErrOutcomeUnknown, asynclock.ErrLost,
	} {
		if errors.Is(err, expected) {
			return err == nil
		}
	}
	w.Errorf("got error %v", err)
	return false
}
