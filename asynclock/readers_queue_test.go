// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

const oneWay = 10 * time.Millisecond

// farAway puts every client 10 ms away from the store.
func farAway(w *world) {
	w.store.Every(asynclocktest.Any, asynclocktest.Slow(oneWay, oneWay))
	w.store.EveryEvent(asynclocktest.AnyEvent, asynclocktest.Delay(oneWay))
}

// A retained tenure is for the first waiter. A try behind others is refused.
func TestTryLockDoesNotWaitBehindARetainedTenure(t *testing.T) {
	story(t, func(w *world) {
		farAway(w)
		c := w.client(asynclock.WithRetention(time.Minute))
		long := asynclock.WithTTL(time.Minute)
		one, other := rlock(w, c, "key"), rlock(w, c, "key", long)
		unlock(w, other)
		unlock(w, one)
		elsewhere := rlock(w, w.client(), "key")
		writer := w.ask(w.Context(), c, "key") // waits for the reader elsewhere
		time.Sleep(oneWay / 2)
		try := w.askBy(w.Context(), c.TryLock, "key")
		w.pass(time.Minute)
		select {
		case <-try.done:
			wantError(w, try.err, asynclock.ErrHeld)
		default:
			w.Error("TryLock waits for a minute")
		}
		_, _ = writer, elsewhere
	})
}

// One tenure is retained and one is open. Readers join the open one.
func TestReadersBesideARetainedTenure(t *testing.T) {
	story(t, func(w *world) {
		farAway(w)
		c := w.client(asynclock.WithRetention(time.Minute))
		long := asynclock.WithTTL(time.Minute)
		one, other := rlock(w, c, "key"), rlock(w, c, "key", long)
		unlock(w, one) // retained; the other is in use and open
		second := w.askBy(w.Context(), c.RLock, "key", long)
		time.Sleep(oneWay / 2)
		third := w.askBy(w.Context(), c.RLock, "key", long)
		w.pass(time.Second)
		wantValid(w, other)
		unlock(w, second.has())
		unlock(w, third.has())
	})
}

// These tests show the effects of a death, or of a lost message, on readers and on those behind them.

// nextHeartbeat is when a waiter's next request comes at the latest.
const nextHeartbeat = heartbeat + heartbeat/5

// A reader that dies keeps a writer waiting until its TTL ends in the store, and not longer. Its own leases have ended
// before that.
func TestAReaderThatDiesKeepsAWriterWaitingForItsTTL(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(asynclock.WithDescription("dies")), w.client()
		one, other, lives := rlock(w, ours, "key"), rlock(w, ours, "key"), rlock(w, theirs, "key")
		writer := w.ask(w.Context(), w.client(), "key")
		w.pass(ttl)
		w.store.Cut(0)
		cut, free := time.Now(), time.Now().Add(w.remains("dies"))
		w.pass(ttl / 2)
		wantValid(w, lives)
		unlock(w, lives)
		writer.waits() // for the share of the dead, which only its TTL ends
		<-one.Done()
		end := time.Now()
		wantLost(w, one, asynclock.ErrNotRenewed)
		wantLost(w, other, asynclock.ErrNotRenewed)
		if took := end.Sub(cut); took > trusted(ttl) {
			w.Errorf("a reader that is cut off: its lease ended after %v, want %v at most", took, trusted(ttl))
		}
		unlock(w, writer.get())
		if after := writer.at.Sub(end); after < ttl-trusted(ttl) {
			w.Errorf("the writer came %v after the end of the reader's lease, want %v at least", after, ttl-trusted(ttl))
		}
		if after := writer.at.Sub(free); after < 0 || after > 5*time.Millisecond {
			w.Errorf("the writer came %v after the end of the reader's TTL, want 5ms at most", after)
		}
	})
}

// remains returns how long the store keeps the share of the holder with this description.
func (w *world) remains(description string) time.Duration {
	w.Helper()
	for _, h := range w.inspect("key").Holders {
		if h.Holder == description {
			return h.Remaining
		}
	}
	w.Fatalf("nobody called %q has a share", description)
	return 0
}

// The share of a reader that died ends by itself. Those of others last as long as they are renewed.
func TestAReaderThatDiesLeavesOthersTheirShare(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		dies, lives := rlock(w, ours, "key"), rlock(w, theirs, "key")
		writer := w.ask(w.Context(), w.client(), "key")
		w.store.Cut(0)
		w.pass(3 * ttl)
		wantLost(w, dies, asynclock.ErrNotRenewed)
		wantValid(w, lives)
		writer.waits()
		if n := len(w.inspect("key").Holders); n != 1 {
			w.Errorf("readers in the store: got %d, want the one that lives", n)
		}
		unlock(w, lives)
		unlock(w, writer.has())
	})
}

// A writer at the head of the queue keeps readers out. If it leaves, they come in at once. If it dies, they come in
// when the store has missed three of its heartbeats, by the next one of theirs.
func TestReadersBehindAWriterThatIsGone(t *testing.T) {
	for _, c := range []struct {
		name string
		gone func(w *world, giveUp func())
		// of the same client as the writer
		local bool
		after time.Duration
	}{
		{"it gave up", func(_ *world, giveUp func()) { giveUp() }, false, 0},
		{"it gave up, and the reader is of its client", func(_ *world, giveUp func()) { giveUp() }, true, 0},
		{"it died", func(w *world, _ func()) { w.store.Cut(1) }, false, 3*heartbeat + nextHeartbeat},
	} {
		scene(t, c.name, func(w *world) {
			ours, theirs, third := w.client(), w.client(), w.client()
			reader := rlock(w, ours, "key")
			ctx, giveUp := context.WithCancel(w.Context())
			defer giveUp()
			writer := w.ask(ctx, theirs, "key")
			behind := third
			if c.local {
				behind = theirs
			}
			late := w.askBy(w.Context(), behind.RLock, "key")
			w.pass(ttl)
			late.waits()
			gone := time.Now()
			c.gone(w, giveUp)
			l := late.get()
			if took := late.at.Sub(gone); took > c.after {
				w.Errorf("the reader behind the writer came after %v, want %v at most", took, c.after)
			}
			wantValid(w, reader)
			if l.Token() != reader.Token() {
				w.Errorf("token of the reader that joined: got %d, want %d", l.Token(), reader.Token())
			}
			giveUp()
			<-writer.done
			unlock(w, l)
			unlock(w, reader)
		})
	}
}

// A reader that is not told of a ForceUnlock learns of it by its next renewal.
func TestReadersThatAreNotToldOfForce(t *testing.T) {
	for _, c := range []struct {
		name  string
		taken bool
		cause error
	}{{"the key is free", false, asynclock.ErrExpired}, {"a writer has it", true, asynclock.ErrStolen}} {
		scene(t, c.name, func(w *world) {
			ours, theirs := w.client(), w.client()
			told, deaf := rlock(w, ours, "key"), rlock(w, theirs, "key")
			w.store.EveryEvent(asynclocktest.Kind(store.EventForced).For(1), asynclocktest.Drop)
			w.force(w.client(), "key")
			wantLost(w, told, asynclock.ErrForced)
			wantValid(w, deaf)
			if c.taken {
				defer unlock(w, lock(w, ours, "key"))
			}
			w.pass(ttl/3 + time.Second)
			wantLost(w, deaf, c.cause)
			wantError(w, deaf.Unlock(w.Context()), c.cause)
		})
	}
}

// Two tenures are retained. A reader's request is under way while a writer comes.
func TestARetainedTenureLeavesTheQueueAlone(t *testing.T) {
	story(t, func(w *world) {
		farAway(w)
		c := w.client(asynclock.WithRetention(time.Minute))
		long := asynclock.WithTTL(time.Minute)
		one, other := rlock(w, c, "key"), rlock(w, c, "key", long)
		unlock(w, other)
		unlock(w, one)                           // both are retained
		elsewhere := rlock(w, w.client(), "key") // a reader elsewhere
		reader := w.askBy(w.Context(), c.RLock, "key", long)
		time.Sleep(oneWay / 2)
		writer := w.ask(w.Context(), c, "key", long)
		w.pass(time.Second)
		wantValid(w, elsewhere)
		select {
		case <-writer.done:
			w.Errorf("Lock has returned beside a valid reader elsewhere: lease mode %v, valid %v, error %v", writer.lease.Mode(), writer.lease.Valid(0), writer.err)
		default:
		}
		_ = reader
	})
}
