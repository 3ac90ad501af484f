// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

// A handoff is one way to pass something from this process to another.
type handoff interface {
	// pass does it once and returns the time from the call that gives it away to
	// the moment the other side has it.
	pass(ctx context.Context) (time.Duration, error)
	close(ctx context.Context) error
}

// rest is how long a holder does its work. By then the taker and the server are
// asleep, as they are when a lock is passed on in earnest, and not still warm
// from what each kind of handoff had to prepare.
const rest = 2 * time.Millisecond

// bareHandoff is the floor: one script that does what every release has to do.
type bareHandoff struct {
	giver  rueidis.Client
	script *rueidis.Lua
	taker  *taker
}

const (
	floorKey     = "floor:key"
	floorChannel = "floor"
	floorOwner   = "owner"
)

// bareScript sees that the key is the giver's, deletes it, and tells someone.
const bareScript = `if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return redis.call('PUBLISH', ARGV[2], ARGV[3])`

func newBareHandoff(ctx context.Context, address string) (*bareHandoff, error) {
	giver, err := rueidis.NewClient(clientOption(address))
	if err != nil {
		return nil, err
	}
	taker, err := startTaker(ctx, "floor", address)
	return &bareHandoff{giver, rueidis.NewLuaScript(bareScript), taker}, err
}

func (b *bareHandoff) pass(ctx context.Context) (time.Duration, error) {
	set := b.giver.B().Set().Key(floorKey).Value(floorOwner).PxMilliseconds(15000).Build()
	if err := b.giver.Do(ctx, set).Error(); err != nil {
		return 0, err
	}
	if err := b.taker.ask(); err != nil {
		return 0, err
	}
	time.Sleep(rest)
	start := time.Now()
	if err := b.script.Exec(ctx, b.giver, []string{floorKey}, []string{floorOwner, floorChannel, "message"}).Error(); err != nil {
		return 0, err
	}
	at, err := b.taker.took()
	if err != nil {
		return 0, err
	}
	return at.Sub(start), b.taker.awaitReady()
}

func (b *bareHandoff) close(context.Context) error {
	b.giver.Close()
	return b.taker.stop()
}

// lockHandoff passes a lock.
type lockHandoff struct {
	store *redisstore.Store
	locks *asynclock.Client
	taker *taker
}

const handoffKey = "bench:handoff"

func newLockHandoff(ctx context.Context, address string) (*lockHandoff, error) {
	store, err := redisstore.Open(rueidis.ClientOption{InitAddress: []string{address}})
	if err != nil {
		return nil, err
	}
	locks, err := asynclock.New(store)
	if err != nil {
		return nil, err
	}
	taker, err := startTaker(ctx, "lock", address)
	return &lockHandoff{store, locks, taker}, err
}

func (h *lockHandoff) pass(ctx context.Context) (time.Duration, error) {
	lease, err := h.locks.Lock(ctx, handoffKey)
	if err != nil {
		return 0, err
	}
	if err := h.taker.ask(); err != nil {
		return 0, err
	}
	if err := h.awaitWaiter(ctx); err != nil {
		return 0, err
	}
	time.Sleep(rest)
	start := time.Now()
	if err := lease.Unlock(ctx); err != nil {
		return 0, err
	}
	at, err := h.taker.took()
	if err != nil {
		return 0, err
	}
	return at.Sub(start), h.taker.awaitReady()
}

// awaitWaiter returns when the taker is queued, so that what is timed is the
// handoff alone.
func (h *lockHandoff) awaitWaiter(ctx context.Context) error {
	for {
		info, err := h.locks.Inspect(ctx, handoffKey)
		if err != nil || info.Waiters > 0 {
			return err
		}
	}
}

func (h *lockHandoff) close(ctx context.Context) error {
	if err := h.taker.stop(); err != nil {
		return err
	}
	defer h.store.Close()
	return h.locks.Close(ctx)
}
