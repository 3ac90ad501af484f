// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"
)

// handoff measures the time from the unlock in one process to the lock in another process that
// waits for it.
func handoff(size sizes) workload {
	return workload{
		name: "handoff", title: "Handoff: from Unlock in one process to Lock in another",
		metrics:  []metric{{Name: "p50", Unit: "µs"}, {Name: "p90", Unit: "µs"}, {Name: "p99", Unit: "µs"}},
		rounds:   size.rounds,
		leaveOut: measuresOnce,
		prepare: func(ctx context.Context, w world, p peer) (runner, error) {
			give := giveLock
			if p.is.floor {
				give = giveMessage
			}
			g, err := give(ctx, w, p)
			if err != nil {
				return nil, err
			}
			passes := size.operations / 10
			if p.is.settles > 0 {
				passes /= 10
			}
			taker, err := startTaker(ctx, p, w)
			return &handoffs{giver: g, taker: taker, times: make([]float64, passes)}, err
		},
	}
}

// handoffs passes a key or a message to a taker over and over.
type handoffs struct {
	giver giver
	taker *taker
	times []float64
}

// A giver is the near side of a handoff.
type giver interface {
	// take gets the key to give. The taker waits for it only afterwards.
	take(ctx context.Context) error
	// waited returns when the taker waits, so that only the handoff is timed.
	waited(ctx context.Context) error
	give(ctx context.Context) error
	close(ctx context.Context) error
}

func (h *handoffs) round(ctx context.Context) ([]float64, error) {
	defer context.AfterFunc(ctx, h.taker.kill)() // so that nobody waits for it
	for i := range h.times {
		passed, err := h.pass(ctx)
		if err != nil {
			return nil, err
		}
		h.times[i] = micros(passed)
	}
	return quantiles(h.times, 0.5, 0.9, 0.99), nil
}

// rest is how long a holder works. After this time the taker and the server sleep, as in real
// handoffs. Otherwise they would still be warm from the preparations of each kind of handoff.
const rest = 2 * time.Millisecond

func (h *handoffs) pass(ctx context.Context) (time.Duration, error) {
	if err := h.giver.take(ctx); err != nil {
		return 0, err
	}
	if err := h.taker.ask(); err != nil {
		return 0, err
	}
	if err := h.giver.waited(ctx); err != nil {
		return 0, err
	}
	time.Sleep(rest)
	start := time.Now()
	if err := h.giver.give(ctx); err != nil {
		return 0, err
	}
	at, err := h.taker.took()
	if err != nil {
		return 0, err
	}
	return at.Sub(start), h.taker.awaitReady()
}

func (h *handoffs) close(ctx context.Context) error {
	if err := h.taker.stop(); err != nil {
		return err
	}
	return h.giver.close(ctx)
}

const (
	floorKey     = "floor:key"
	floorChannel = "floor"
	floorOwner   = "owner"
)

// bareScript checks that the key is the giver's, deletes it, and publishes a message.
const bareScript = `if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return redis.call('PUBLISH', ARGV[2], ARGV[3])`

// messageGiver is the floor: one script that does what every release must do.
type messageGiver struct {
	client rueidis.Client
	script *rueidis.Lua
}

func giveMessage(_ context.Context, w world, _ peer) (giver, error) {
	client, err := rueidis.NewClient(clientOption(w))
	return &messageGiver{client, rueidis.NewLuaScript(bareScript)}, err
}

func (m *messageGiver) take(ctx context.Context) error {
	return m.client.Do(ctx, m.client.B().Set().Key(floorKey).Value(floorOwner).PxMilliseconds(15000).Build()).Error()
}

func (m *messageGiver) waited(context.Context) error { return nil } // the subscriber always does

func (m *messageGiver) give(ctx context.Context) error {
	return m.script.Exec(ctx, m.client, []string{floorKey}, []string{floorOwner, floorChannel, "message"}).Error()
}

func (m *messageGiver) close(context.Context) error {
	m.client.Close()
	return nil
}

// lockGiver gives a lock.
type lockGiver struct {
	client client
	worker worker
	key    string
	held   held
	pings  rueidis.Client
	settle time.Duration
}

func giveLock(ctx context.Context, w world, p peer) (giver, error) {
	c, work, err := p.openWorker(ctx, w)
	if err != nil {
		return nil, err
	}
	pings, err := rueidis.NewClient(clientOption(w))
	return &lockGiver{client: c, worker: work, key: handoffKey(p.name), pings: pings, settle: max(settle, p.is.settles)}, err
}

func handoffKey(peer string) string { return "bench:handoff:" + peer }

func (l *lockGiver) take(ctx context.Context) (err error) {
	l.held, err = l.worker.lock(ctx, l.key)
	return err
}

// settle is how long to wait for a taker whose waiting can't be observed.
const settle = 3 * time.Millisecond

// waited asks for the waiters if the peer can report them. For other peers it makes similar work
// for long enough.
func (l *lockGiver) waited(ctx context.Context) error {
	start := time.Now()
	for {
		if a, ok := l.client.(*asynclockClient); ok {
			info, err := a.locks.Inspect(ctx, l.key)
			if err != nil || info.Waiters > 0 {
				return err
			}
			if time.Since(start) > 10*time.Second {
				return fmt.Errorf("nobody came to wait for %s", l.key)
			}
			continue
		}
		err := l.pings.Do(ctx, l.pings.B().Ping().Build()).Error()
		if err != nil || time.Since(start) > l.settle {
			return err
		}
	}
}

func (l *lockGiver) give(ctx context.Context) error { return l.held.Unlock(ctx) }

func (l *lockGiver) close(ctx context.Context) error {
	l.pings.Close()
	return l.client.close(ctx)
}
