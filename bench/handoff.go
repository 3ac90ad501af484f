// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// handoff measures the time from the unlock in one process to the lock in another process that
// waits for it.
func handoff(size sizes) workload {
	return workload{
		name: "handoff", title: "Handoff: from Unlock in one process to Lock in another",
		metrics:  latencies,
		leaveOut: only("it is as the floor here", func(t traits) bool { return !t.lowest }),
		prepare: func(ctx context.Context, s *stage) round {
			passes := size.operations / 10
			if s.peer.is.settles > 0 {
				passes /= 10
			}
			give := s.lockGiver()
			if s.peer.is.floor {
				give = s.messageGiver()
			}
			t := &taker{s.spawn("taker", s.peer, 0)}
			s.after(t.end)
			defer context.AfterFunc(ctx, t.kill)() // so that nobody waits for it
			t.awaitReady()
			return func(ctx context.Context) []float64 {
				defer context.AfterFunc(ctx, t.kill)()
				times := make([]float64, passes)
				for i := range times {
					times[i] = micros(pass(ctx, give, t))
				}
				return summarize(times)
			}
		},
	}
}

// A giver is the near side of a handoff.
type giver struct {
	// take gets the key to give. The taker waits for it only afterwards.
	take func(ctx context.Context)
	// waited returns when the taker waits, so that only the handoff is timed.
	waited func(ctx context.Context)
	give   func(ctx context.Context) error
}

// rest is how long a holder works. After this time the taker and the server sleep, as in real
// handoffs. Otherwise they would still be warm from the preparations of each kind of handoff.
const rest = 2 * time.Millisecond

func pass(ctx context.Context, near giver, t *taker) time.Duration {
	near.take(ctx)
	check(t.tell.Encode("take"))
	near.waited(ctx)
	time.Sleep(rest)
	start := time.Now()
	check(near.give(ctx))
	var at time.Time
	t.hear(&at)
	t.awaitReady()
	return at.Sub(start)
}

const (
	floorChannel = "floor"
	floorOwner   = "owner"
)

// bareScript checks that the key is the giver's, deletes it, and publishes a message.
var bareScript = rueidis.NewLuaScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return redis.call('PUBLISH', ARGV[2], ARGV[3])`)

// messageGiver is the floor: one script that does what every release must do.
func (s *stage) messageGiver() giver {
	c := s.meterless()
	return giver{
		take: func(ctx context.Context) {
			check(c.Do(ctx, c.B().Set().Key(s.key).Value(floorOwner).PxMilliseconds(usualTTL.Milliseconds()).Build()).Error())
		},
		waited: func(context.Context) {}, // the subscriber always does
		give: func(ctx context.Context) error {
			return bareScript.Exec(ctx, c, []string{s.key}, []string{floorOwner, floorChannel, "message"}).Error()
		},
	}
}

// settle is how long to wait for a taker whose waiting can't be observed.
const settle = 3 * time.Millisecond

// lockGiver gives a lock. It asks for the waiters if the peer can report them. For other peers it makes
// similar work for long enough.
func (s *stage) lockGiver() giver {
	c, pings := s.client(), s.meterless()
	lock := c.worker()
	var h held
	return giver{
		take: func(ctx context.Context) { h = must(lock(ctx, s.key)) },
		waited: func(ctx context.Context) {
			for start := time.Now(); ; {
				switch {
				case c.locks == nil:
					check(pings.Do(ctx, pings.B().Ping().Build()).Error())
					if time.Since(start) > max(settle, s.peer.is.settles) {
						return
					}
				case must(c.locks.Inspect(ctx, s.key)).Waiters > 0:
					return
				case time.Since(start) > 10*time.Second:
					check(fmt.Errorf("nobody came to wait for %s", s.key))
				}
			}
		},
		give: func(ctx context.Context) error { return h.Unlock(ctx) },
	}
}

// A taker is the other side of a handoff, in a process of its own, like a client. Each line written
// to it requests one take. It answers with the time of the take, and says when it is ready again.
type taker struct{ *child }

func (t *taker) awaitReady() {
	var ready string
	t.hear(&ready)
}

// take does the work of a taker process: it answers each line with a take, and then gives the key back.
func take(ctx context.Context, s *stage, _ int, in *json.Decoder, out *json.Encoder) {
	take := s.takeLocks
	if s.peer.is.floor {
		take = s.takeMessages
	}
	one := take(ctx)
	check(out.Encode("ready"))
	for {
		var told string
		if err := in.Decode(&told); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			check(err)
		}
		h := one()
		check(out.Encode(time.Now()))
		check(h.Unlock(ctx))
		check(out.Encode("ready"))
	}
}

// takeLocks is a client that waits for the lock.
func (s *stage) takeLocks(ctx context.Context) func() held {
	lock := s.client().worker()
	return func() held { return must(lock(ctx, s.key)) }
}

// takeMessages is the floor's taker: a subscriber.
func (s *stage) takeMessages(ctx context.Context) func() held {
	c := s.meterless()
	received, confirmed, failed := make(chan struct{}, 1), make(chan struct{}), make(chan error, 1)
	var once sync.Once
	hooked := rueidis.WithOnSubscriptionHook(s.life(ctx), func(rueidis.PubSubSubscription) { once.Do(func() { close(confirmed) }) })
	go func() { // ends with the stage
		failed <- c.Receive(hooked, c.B().Subscribe().Channel(floorChannel).Build(), func(rueidis.PubSubMessage) {
			received <- struct{}{}
		})
	}()
	wait := func(something <-chan struct{}) {
		select {
		case <-something:
		case err := <-failed:
			check(err)
		}
	}
	wait(confirmed)
	return func() held {
		wait(received)
		return unlocking(func(context.Context) error { return nil })
	}
}
