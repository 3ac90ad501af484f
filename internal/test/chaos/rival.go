// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// A rival is a caller in the nemesis' own process, which no fault hits. It is for
// faults that hurt only who waits behind a certain holder at a certain moment:
// left to themselves, workers are so situated too seldom.
type rival struct {
	*caller
	store *workersStore
}

// newRival connects one, past all proxies.
func (b *blow) newRival() (*rival, error) {
	option, err := rueidis.ParseURL(b.store.url)
	if err != nil {
		return nil, err
	}
	store, err := openStore(option, graceOf(b.store.url, b.TTLs))
	if err != nil {
		return nil, err
	}
	locks, err := asynclock.New(store, asynclock.WithTTL(b.longestTTL()))
	if err != nil {
		store.close()
		return nil, err
	}
	b.rivals++
	w := &worker{orders: orders{Name: fmt.Sprintf("rival%d", b.rivals)}, locks: locks, history: b.file}
	return &rival{&caller{worker: w, rand: b.rand}, store}, nil
}

// lock takes a key, and waits for it if need be.
func (v *rival) lock(ctx context.Context, key string, ttl time.Duration) (*holding, error) {
	t := task{op: v.newOp(), key: key, how: "Lock", ttl: ttl}
	asked := history.Now()
	lease, err := v.locks.Lock(ctx, key)
	if err != nil {
		return nil, err
	}
	return v.granted(t, asked, lease), nil
}

// keep holds a key for a time, and asks all the while whether that is trusted.
func (b *blow) keep(h *holding, d time.Duration) {
	for end := time.Now().Add(d); h.ask() && time.Now().Before(end) && !ended(b.ctx); {
		b.wait(b.longestTTL() / 200)
	}
}

// unlock gives a key back.
func (h *holding) unlock() {
	h.ask()
	over := history.Now()
	err := h.lease.Unlock(context.Background())
	h.ended(over, err)
}

// close leaves. A lease that is still held goes with it.
func (v *rival) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := v.locks.Close(ctx)
	v.store.close()
	return err
}

// outrun lets a worker be granted a key while it stands still. It hears of that
// when the grant is over, the key has gone on, and it has asked again: the old
// message looks as if it were new then.
func (b *blow) outrun() (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), b.limits().Turns)
	defer cancel()
	s, key, ttl := b.pick(), b.Keys[b.rand.IntN(len(b.Keys))], b.longestTTL()
	b.hit(s.name)
	v, err := b.newRival()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.close()) }()
	first, err := v.lock(ctx, key, ttl)
	if err != nil {
		return err
	}
	for waiters := 0; waiters == 0 && !ended(b.ctx); b.wait(ttl / 100) {
		info, err := v.locks.Inspect(ctx, key)
		if err != nil {
			return err
		}
		waiters = info.Waiters
		first.ask()
	}
	const late = 85 // percent of the TTL; an inbox that hears nothing for 2 s is given up
	s.proxy.change(func(w *weather) { w.messages = ttl * late / 100 })
	defer s.proxy.change(func(w *weather) { w.messages = 0 })
	if err := s.process.Pause(); err != nil {
		return err
	}
	first.unlock()
	second, err := v.lock(ctx, key, ttl) // when what the worker was granted has run out
	if err = errors.Join(err, s.process.Resume()); err != nil {
		return err
	}
	// The message was sent before this lease.
	b.keep(second, ttl)
	second.unlock()
	return nil
}

// overstay makes all replies to workers late, to the end, while a rival waits for each key. A
// worker that counted its trust from a reply, and kept its lease to the end, would still
// trust it when the next holder has the key.
func (b *blow) overstay() (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), b.limits().Turns)
	defer cancel()
	b.hit("all")
	v, err := b.newRival()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.close()) }()
	ttl := b.longestTTL()
	for _, s := range b.seats {
		s.proxy.change(func(w *weather) { w.down = ttl * 22 / 100 }) // a request is waited for for 25
		defer s.proxy.change(func(w *weather) { w.down = 0 })
	}
	problems := make(chan error, len(b.Keys))
	for _, key := range b.Keys {
		go func() { // ends soon after ctx; its problem is waited for
			var err error
			for err == nil && !ended(b.ctx) {
				var h *holding
				if h, err = v.lock(ctx, key, ttl); err == nil {
					b.keep(h, ttl/10)
					h.unlock()
				}
			}
			problems <- err
		}()
	}
	for range b.Keys {
		err = errors.Join(err, <-problems)
	}
	return err
}
