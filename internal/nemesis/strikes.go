// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// pick chooses a worker.
func (b *blow) pick() *seat { return b.seats[b.rand.IntN(len(b.seats))] }

// killWorker kills one, and puts another in its place.
func (b *blow) killWorker() error {
	s, pause := b.pick(), b.between(0, 20)
	b.hit(s.name)
	if err := s.process.kill(); err != nil {
		return err
	}
	b.wait(pause)
	return b.employ(s)
}

func (b *blow) pauseWorker(d time.Duration) error {
	s := b.pick()
	b.hit(s.name)
	if err := s.process.pause(); err != nil {
		return err
	}
	b.wait(d)
	return s.process.resume()
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

func (b *blow) pauseServer(d time.Duration) error {
	if err := b.store.process.pause(); err != nil {
		return err
	}
	b.wait(d)
	return b.store.process.resume()
}

// restart kills the server and starts it again.
func (b *blow) restart(empty bool) error {
	d := b.between(0, 60)
	if err := b.store.process.kill(); err != nil {
		return err
	}
	if empty {
		if err := b.store.forget(); err != nil {
			return err
		}
	}
	b.wait(d)
	return b.store.run(context.WithoutCancel(b.ctx))
}

// command sends the server one that does the damage, or has none to do.
func (b *blow) command(words ...string) error {
	_, err := b.store.ask(context.WithoutCancel(b.ctx), words...)
	return err
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
	d := b.between(5, 120)
	if err := b.command("CONFIG", "SET", "maxmemory", "1"); err != nil {
		return err
	}
	b.wait(d)
	return b.command("CONFIG", "SET", "maxmemory", "0")
}

// scribble writes into one of our Redis keys what is not ours, and removes it
// after a while: the library leaves what it does not know as it is.
func (b *blow) scribble() error {
	ctx, d := context.WithoutCancel(b.ctx), b.between(1, 20)
	key := b.keys[b.rand.IntN(len(b.keys))]
	kind := []string{"l", "q", "w", "f"}[b.rand.IntN(4)]
	b.hit(kind + " of " + key)
	names, err := b.store.names(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ":"+key+":"+kind) {
			continue
		}
		if kind == "l" { // the holder's record is gone: that is a loss, of this key only
			b.record.Lossy, b.record.Key = true, key
		}
		if err := b.command("SET", name, "scribble"); err != nil {
			return err
		}
		b.wait(d)
		return b.command("DEL", name)
	}
	return nil // it is not there just now
}

// turnBack sets the server's clock back, a little more each time.
func (b *blow) turnBack() error { return b.clock.setBack(b.between(20, 100)) }
