// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
)

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
