// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// pick chooses a worker.
func (b *blow) pick() *seat { return b.seats[b.rand.IntN(len(b.seats))] }

// killWorker kills one, and puts another in its place.
func (b *blow) killWorker() error {
	s, pause := b.pick(), b.between(0, 20)
	b.hit(s.name)
	select {
	case <-s.process.Ended():
		return fmt.Errorf("%s ended by itself: %w", s.name, s.process.Err())
	default:
	}
	if err := s.process.Kill(); err != nil {
		return err
	}
	b.wait(pause)
	return b.employ(s)
}

func (b *blow) pauseWorker(d time.Duration) error {
	s := b.pick()
	b.hit(s.name)
	if err := s.process.Pause(); err != nil {
		return err
	}
	b.wait(d)
	return s.process.Resume()
}

// storm changes the weather of one worker, or of all of them, for a while.
func (b *blow) storm(change func(*weather)) error {
	d := b.between(20, 150)
	some := b.seats
	b.hit("all")
	if b.rand.IntN(3) > 0 {
		s := b.pick()
		b.hit(s.name)
		some = []*seat{s}
	}
	for _, s := range some {
		s.proxy.change(change)
	}
	b.wait(d)
	for _, s := range some {
		s.proxy.change(func(w *weather) { *w = weather{} })
	}
	return nil
}

// refuse ends a worker's connections and lets it make no others for a while.
func (b *blow) refuse() error {
	s, d := b.pick(), b.between(0, 100)
	b.hit(s.name)
	s.proxy.change(func(w *weather) { w.refuse = true })
	s.proxy.cut()
	b.wait(d)
	s.proxy.change(func(w *weather) { w.refuse = false })
	return nil
}

// node chooses a server that has keys of its own.
func (b *blow) node(ctx context.Context) (*servers.Redis, error) {
	primaries, err := b.store.primaries(ctx)
	if err != nil {
		return nil, err
	}
	node := primaries[b.rand.IntN(len(primaries))]
	if len(primaries) > 1 {
		b.hit(node.Addr)
	}
	return node, nil
}

func (b *blow) pauseServer(d time.Duration) error {
	node, err := b.node(context.WithoutCancel(b.ctx))
	if err != nil {
		return err
	}
	if err := node.Pause(); err != nil {
		return err
	}
	b.wait(d)
	return node.Resume()
}

// restart kills the server and starts it again.
func (b *blow) restart(empty bool) error {
	d, node := b.between(0, 60), b.store.Nodes[0]
	node.Kill()
	if empty {
		if err := os.RemoveAll(filepath.Join(node.Dir, "appendonlydir")); err != nil {
			return err
		}
	}
	b.wait(d)
	return node.Restart(context.WithoutCancel(b.ctx))
}

// command sends a server one that does the damage.
func (b *blow) command(words ...string) error {
	ctx := context.WithoutCancel(b.ctx)
	node, err := b.node(ctx)
	if err != nil {
		return err
	}
	return node.Do(ctx, words...)
}

// pauseClients makes the server answer nobody, or only those who don't write.
func (b *blow) pauseClients() error {
	d := b.between(5, 120)
	if err := b.command("CLIENT", "PAUSE", strconv.FormatInt(d.Milliseconds(), 10), []string{"ALL", "WRITE"}[b.rand.IntN(2)]); err != nil {
		return err
	}
	b.wait(d)
	return nil // it has ended by itself
}

// exhaust makes the server refuse to write.
func (b *blow) exhaust() error {
	ctx, d := context.WithoutCancel(b.ctx), b.between(5, 120)
	node, err := b.node(ctx)
	if err != nil {
		return err
	}
	if err := node.Do(ctx, "CONFIG", "SET", "maxmemory", "1"); err != nil {
		return err
	}
	b.wait(d)
	return node.Do(ctx, "CONFIG", "SET", "maxmemory", "0")
}

// scribble writes into one of the Redis keys of a lock what is not ours, and removes
// it after a while: the library leaves what it does not know as it is.
func (b *blow) scribble() error {
	ctx, d := context.WithoutCancel(b.ctx), b.between(1, 20)
	key := b.Keys[b.rand.IntN(len(b.Keys))]
	kind := []string{"l", "q", "w", "f", "x", "e", "g"}[b.rand.IntN(7)]
	b.hit(kind + " of " + key)
	names, err := b.store.names(ctx)
	if err != nil {
		return err
	}
	for node, some := range names {
		for _, name := range some {
			bucket, _, found := strings.Cut(name, ":"+key+":")
			if !found {
				continue
			}
			name = bucket + ":" + key + ":" + kind
			if kind == "e" || kind == "g" { // of all keys of the bucket
				name = bucket + ":" + kind
			}
			if err := b.overwrite(ctx, node, name, key); err != nil {
				return err
			}
			b.wait(d)
			return node.Do(ctx, "DEL", name)
		}
	}
	return nil // nobody uses it just now
}

// overwrite writes into a Redis key, be it there or not, that belongs to a lock. If
// that had a holder, its record is gone: a loss, of this key only.
func (b *blow) overwrite(ctx context.Context, node *servers.Redis, name, key string) error {
	if !strings.HasSuffix(name, ":l") {
		return node.Do(ctx, "SET", name, "scribble")
	}
	was, err := node.Ask(ctx, "SET", name, "scribble", "GET")
	if !was.IsNil() {
		b.record.Lossy, b.record.Key = true, key
	}
	return err
}

// turnBack sets the servers' clock back, by less than half of the shortest TTL, when
// the store has lost nothing for twice as long, nor will until the clock is past the tokens.
// docs/chaos.md says why tokens rise then, whoever dies meanwhile.
func (b *blow) turnBack() error {
	d := slices.Min(b.TTLs) / 100 * time.Duration(10+b.rand.Int64N(35))
	if b.wait(2 * d); ended(b.ctx) {
		return nil
	}
	b.record.Begin = history.Now()
	b.record.Shift = -history.Span(d)
	err := b.clock.setBack(d)
	b.wait(2 * d)
	if slices.ContainsFunc(b.faults, func(f fault) bool { return f.lossy || f.forgets }) {
		b.wait(ahead)
	}
	return err
}

// ahead is longer than tokens are ahead of a clock that was set back: redisstore begins them above all that
// may have been given since it has noted the clock (epoch.lua).
const ahead = 4 * time.Second

// turnForward sets it forward.
func (b *blow) turnForward() error {
	d := b.between(10, 60)
	b.record.Step, b.record.Shift = history.Span(d), history.Span(d)
	return b.clock.setBack(-d)
}
