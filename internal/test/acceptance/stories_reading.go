// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/faultconn"
)

// hasReaders reports whether the store has readers. If it has none, it has to say so.
func (env *Env) hasReaders(c *asynclock.Client) bool {
	env.Helper()
	if env.Connect(new(faultconn.Line)).Features().Shared {
		return true
	}
	if _, err := c.RLock(env.ctx, "key"); !errors.Is(err, asynclock.ErrUnsupported) {
		env.Errorf("RLock in a store without readers: got %v, want ErrUnsupported", err)
	}
	return false
}

// A readingRoom counts who is in it. Readers may be there together, and a writer alone.
type readingRoom struct {
	readers, writers, most atomic.Int64
}

// enter lets a holder in, and returns whom it meets.
func (r *readingRoom) enter(mode asynclock.Mode) (readers, writers int64) {
	if mode == asynclock.Exclusive {
		return r.readers.Load(), r.writers.Add(1) - 1
	}
	n := r.readers.Add(1)
	for most := r.most.Load(); n > most && !r.most.CompareAndSwap(most, n); most = r.most.Load() {
	}
	return 0, r.writers.Load()
}

func (r *readingRoom) leave(mode asynclock.Mode) {
	if mode == asynclock.Exclusive {
		r.writers.Add(-1)
		return
	}
	r.readers.Add(-1)
}

// readersAndWriters: readers of several clients are in a room together, and a writer is there alone.
func readersAndWriters(env *Env) {
	const rounds = 8
	clients := env.clients(3)
	if !env.hasReaders(clients[0]) {
		return
	}
	room := new(readingRoom)
	visit := func(c *asynclock.Client, i int) {
		take := c.RLock
		if i%4 == 0 {
			take = c.Lock
		}
		l, err := take(env.ctx, "key")
		if errors.Is(err, asynclock.ErrUnreachable) {
			return // as on a busy machine
		}
		if err != nil {
			env.Error(err)
			return
		}
		if readers, writers := room.enter(l.Mode()); (readers > 0 || writers > 0) && l.Valid(0) {
			env.Errorf("a holder of mode %v met %d readers and %d writers", l.Mode(), readers, writers)
		}
		time.Sleep(3 * time.Millisecond)
		room.leave(l.Mode())
		if err := l.Unlock(env.ctx); err != nil && !errors.Is(err, asynclock.ErrLost) {
			env.Error(err)
		}
	}
	var working sync.WaitGroup
	for i, c := range clients {
		for caller := range 4 {
			working.Go(func() {
				for round := range rounds {
					visit(c, i+caller+round)
				}
			})
		}
	}
	working.Wait()
	if room.most.Load() < 2 {
		env.mistimed("readers at the same time: got %d at most, want 2", room.most.Load())
	}
	env.unlock(env.lock(clients[0], "key")) // nothing is left
}

// writerReadsOn: a writer goes on as a reader. Readers come in, and a writer that waited does not.
func writerReadsOn(env *Env) {
	clients := env.clients(3)
	if !env.hasReaders(clients[0]) {
		return
	}
	writer := env.lock(clients[0], "key")
	reading := clients[1].RLockChan(env.ctx, "key")
	reader, err := writer.Downgrade(env.ctx)
	if err != nil {
		env.Fatal(err)
	}
	other, err := (<-reading).Lease()
	if err != nil {
		env.Fatal(err)
	}
	if _, err := clients[2].TryLock(env.ctx, "key"); !errors.Is(err, asynclock.ErrHeld) {
		env.Errorf("TryLock beside two readers: got %v, want ErrHeld", err)
	}
	if min(reader.Token(), other.Token()) <= writer.Token() {
		env.Errorf("tokens of the readers: got %d and %d, want more than the writer's %d", reader.Token(), other.Token(), writer.Token())
	}
	if reader.Token() != other.Token() && !env.Sessions {
		env.Errorf("tokens of the readers: got %d and %d, want the same", reader.Token(), other.Token())
	}
	last := max(reader.Token(), other.Token())
	env.unlock(reader)
	env.unlock(other)
	next := env.lock(clients[2], "key")
	if next.Token() <= last {
		env.Errorf("token of the next writer: got %d, want more than %d, the readers' largest", next.Token(), last)
	}
	env.unlock(next)
}
