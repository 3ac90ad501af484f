// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

func TestReentryOfReadersAndWriters(t *testing.T) {
	story(t, func(w *world) {
		c := w.client(asynclock.WithReentry(true))
		ways := map[string]func(ctx context.Context) (*asynclock.Lease, error){
			"Lock":     func(ctx context.Context) (*asynclock.Lease, error) { return c.Lock(ctx, "key") },
			"TryLock":  func(ctx context.Context) (*asynclock.Lease, error) { return c.TryLock(ctx, "key") },
			"LockChan": func(ctx context.Context) (*asynclock.Lease, error) { return (<-c.LockChan(ctx, "key")).Lease() },
			"RLock":    func(ctx context.Context) (*asynclock.Lease, error) { return c.RLock(ctx, "key") },
			"TryRLock": func(ctx context.Context) (*asynclock.Lease, error) { return c.TryRLock(ctx, "key") },
			"RLockChan": func(ctx context.Context) (*asynclock.Lease, error) {
				return (<-c.RLockChan(ctx, "key")).Lease()
			},
		}
		writer := lock(w, c, "key")
		for name, call := range ways {
			l, err := call(writer.Context())
			if err != nil || l.Mode() != asynclock.Exclusive || l.Token() != writer.Token() {
				w.Fatalf("%s under a writer: got %v, want its lease", name, err)
			}
			unlock(w, l)
		}
		unlock(w, writer)
		reader := rlock(w, c, "key")
		waiting := w.ask(w.Context(), c, "key")
		for name, call := range ways {
			l, err := call(reader.Context())
			if name == "Lock" || name == "TryLock" || name == "LockChan" {
				if !errors.Is(err, asynclock.ErrUpgrade) {
					w.Errorf("%s under a reader: got %v, want ErrUpgrade", name, err)
				}
				continue
			}
			if err != nil { // although a writer waits
				w.Fatalf("%s under a reader: got %v", name, err)
			}
			unlock(w, l)
		}
		wantError(w, errOf(c.LockAll(reader.Context(), []string{"key", "other"})), asynclock.ErrUpgrade)
		unlock(w, reader)
		next := waiting.has()
		unlock(w, next)
		if _, err := c.Lock(context.WithoutCancel(reader.Context()), "key"); err != nil {
			w.Errorf("Lock under a reader that has ended: got %v", err)
		}
	})
}

// The tenure of readers lasts until the last lease under it was unlocked, whichever that is.
func TestAReaderThatJoinedByReentryKeepsTheKey(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(asynclock.WithReentry(true)), w.client()
		outer := rlock(w, ours, "key")
		inner, err := ours.RLock(outer.Context(), "key")
		if err != nil {
			w.Fatal(err)
		}
		unlock(w, outer)
		writer := w.ask(w.Context(), theirs, "key")
		writer.waits()
		unlock(w, inner)
		unlock(w, writer.has())
	})
}

func TestTryRLock(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		writer := lock(w, theirs, "key")
		for name, c := range map[string]*asynclock.Client{"another client": ours, "the same client": theirs} {
			_, err := c.TryRLock(w.Context(), "key")
			var held *asynclock.HeldError
			if !errors.As(err, &held) || held.Token != writer.Token() {
				w.Errorf("beside a writer of %s: got %v, want a HeldError with its token", name, err)
			}
		}
		unlock(w, writer)
		reader := rlock(w, theirs, "key")
		one, err := ours.TryRLock(w.Context(), "key")
		if err != nil {
			w.Fatal(err)
		}
		other, err := ours.TryRLock(w.Context(), "key", asynclock.WithTTL(ttl/2))
		if err != nil {
			w.Fatalf("on other terms, beside readers of this client: got %v", err)
		}
		for _, c := range []*asynclock.Client{ours, theirs} {
			wantError(w, errOf(c.TryLock(w.Context(), "key")), asynclock.ErrHeld)
		}
		for _, l := range []*asynclock.Lease{reader, one, other} {
			unlock(w, l)
		}
		w.wait()
		w.wantUnused()
	})
}

func TestARefusedTryRLockLeavesReadersAlone(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		reader := rlock(w, ours, "key")
		writer := w.ask(w.Context(), theirs, "key")
		wantError(w, errOf(ours.TryRLock(w.Context(), "key", asynclock.WithTTL(ttl/2))), asynclock.ErrHeld)
		wantValid(w, reader)
		unlock(w, reader)
		unlock(w, writer.has())
		w.wait()
		w.wantUnused()
	})
}

func TestFuturesOfReaders(t *testing.T) {
	scene(t, "they are renewed, and give way to a writer", func(w *world) {
		c := w.client()
		one, other := c.RLockChan(w.Context(), "key"), c.RLockChan(w.Context(), "key")
		w.pass(10 * ttl)
		for name, writer := range map[string]*asynclock.Client{"of the same client": c, "of another": w.client()} {
			start := time.Now()
			l := w.ask(w.Context(), writer, "key").get()
			if waited := time.Since(start); waited > 0 {
				w.Errorf("the writer %s waited for %v", name, waited)
			}
			unlock(w, l)
			w.pass(250 * time.Millisecond)
		}
		unlock(w, claim(w, one))
		unlock(w, claim(w, other))
		w.wantUnused()
	})
	scene(t, "received, they last", func(w *world) {
		c := w.client()
		one, other := c.RLockChan(w.Context(), "key"), c.RLockChan(w.Context(), "key")
		first := claim(w, one)
		w.pass(3 * ttl)
		second := claim(w, other)
		unlock(w, first)
		w.pass(3 * ttl)
		wantValid(w, second)
		unlock(w, second)
		w.wantUnused()
	})
	scene(t, "one that was received keeps the key, although nobody has looked at it", func(w *world) {
		ours, theirs := w.client(), w.client()
		first := rlock(w, ours, "key")
		result := <-ours.RLockChan(w.Context(), "key")
		unlock(w, first)
		writer := w.ask(w.Context(), theirs, "key")
		writer.waits()
		second, err := result.Lease()
		if err != nil {
			w.Fatal(err)
		}
		unlock(w, second)
		unlock(w, writer.has())
	})
	scene(t, "the end of the context gives way", func(w *world) {
		ours, theirs := w.client(), w.client()
		ctx, cancel := context.WithCancel(w.Context())
		results := ours.RLockChan(ctx, "key")
		w.wait()
		writer := w.ask(w.Context(), theirs, "key")
		writer.waits()
		cancel()
		unlock(w, writer.has())
		wantError(w, errOf((<-results).Lease()), context.Canceled)
	})
	scene(t, "Close takes them back", func(w *world) {
		ours, theirs := w.client(), w.client()
		results := ours.RLockChan(w.Context(), "key")
		w.wait()
		writer := w.ask(w.Context(), theirs, "key")
		w.close(ours)
		unlock(w, writer.has())
		wantError(w, errOf((<-results).Lease()), asynclock.ErrClosed)
	})
	scene(t, "Close takes them back beside a reader that goes on", func(w *world) {
		c := w.client()
		reader := rlock(w, c, "key")
		results := c.RLockChan(w.Context(), "key")
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			w.close(c)
		}()
		w.wait()
		wantError(w, errOf((<-results).Lease()), asynclock.ErrClosed)
		wantValid(w, reader)
		unlock(w, reader)
		<-closed
		w.wantUnused()
	})
}

func TestWithRLock(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		failed := errors.New("failed")
		err := c.WithRLock(w.Context(), "key", func(ctx context.Context, l *asynclock.Lease) error {
			if found, ok := asynclock.LeaseFrom(ctx, "key"); !ok || found != l || l.Mode() != asynclock.Shared {
				w.Errorf("under WithRLock: got lease %v, %v of mode %v", found, ok, l.Mode())
			}
			return failed
		})
		wantError(w, err, failed)
		w.wantUnused()
		wantError(w, c.WithRLock(w.Context(), "key", nil), asynclock.ErrInvalidOption)
		wantError(w, c.WithRLock(w.Context(), "", func(context.Context, *asynclock.Lease) error { return nil }), asynclock.ErrInvalidKey)
		err = c.WithRLock(w.Context(), "key", func(ctx context.Context, l *asynclock.Lease) error {
			if _, err := c.ForceUnlock(ctx, "key", 0); err != nil {
				w.Error(err)
			}
			<-ctx.Done()
			return nil
		})
		wantError(w, err, asynclock.ErrLost)
	})
}

func TestBadRequestsOfReaders(t *testing.T) {
	story(t, func(w *world) {
		c := w.client(asynclock.WithMinHold(time.Second))
		unlock(w, rlock(w, c, "key")) // a default is for writers
		unlock(w, rlock(w, c, "key", asynclock.WithTTL(ttl/2)))
		w.wait()
		w.wantUnused()
		_, err := c.RLock(w.Context(), "key", asynclock.WithMinHold(time.Second))
		wantError(w, err, asynclock.ErrInvalidOption)
		wantOp(w, err, "rlock", "key")
		_, err = c.RLock(nil, "key") //nolint:staticcheck // a nil context is what is tested
		wantError(w, err, asynclock.ErrInvalidOption)
		wantError(w, errOf((*asynclock.Client)(nil).RLock(w.Context(), "key")), asynclock.ErrInvalidOption)
		wantError(w, errOf(c.TryRLock(w.Context(), "key", asynclock.WithWait(time.Second))), asynclock.ErrInvalidOption)
	})
}

func TestAStoreWithoutReaders(t *testing.T) {
	story(t, func(w *world) {
		c := w.clientOf(without(w.store, func(f *store.Features) { f.Shared = false }))
		wantError(w, errOf(c.RLock(w.Context(), "key")), asynclock.ErrUnsupported)
		wantError(w, errOf((<-c.RLockChan(w.Context(), "key")).Lease()), asynclock.ErrUnsupported)
		w.wantCalls(asynclocktest.Any, 0)
		unlock(w, lock(w, c, "key"))
	})
}

// Inspect says whose a key is that several readers of this client hold.
func TestInspectKnowsReaders(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		reader := rlock(w, ours, "key")
		for c, mine := range map[*asynclock.Client]bool{ours: true, theirs: false} {
			info, err := c.Inspect(w.Context(), "key")
			if err != nil || !info.Held || info.Mode != asynclock.Shared || info.Mine != mine {
				w.Errorf("Inspect: got %+v, %v; want a reader, mine %v", info, err, mine)
			}
		}
		unlock(w, reader)
	})
}

func TestCloseCountsEachReader(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		for range 3 {
			rlock(w, c, "key")
		}
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		if err := c.Close(ctx); err == nil || !strings.Contains(err.Error(), "leases still held: 3") {
			w.Errorf("Close beside three readers: got %v", err)
		}
	})
}

// A reader's unlock and a future's claim cost the same, however many readers there are.
func BenchmarkManyReaders(b *testing.B) {
	for _, readers := range []int{100, 20_000} {
		b.Run(fmt.Sprint(readers), func(b *testing.B) {
			c, err := asynclock.New(memstore.New(), asynclock.WithoutLogger())
			if err != nil {
				b.Fatal(err)
			}
			defer abandon(c)
			leases := make([]*asynclock.Lease, readers)
			for i := range leases {
				leases[i] = rlock(b, c, "key")
			}
			for i := 0; b.Loop(); i++ {
				next := claim(b, c.RLockChan(context.Background(), "key"))
				unlock(b, leases[i%readers])
				leases[i%readers] = next
			}
			for _, l := range leases {
				unlock(b, l)
			}
		})
	}
}

// A HeldError has the token that the readers' leases have, and ForceUnlock takes it.
func TestTheTokenOfReadersInAHeldError(t *testing.T) {
	story(t, func(w *world) {
		ours := w.client()
		rlock(w, w.client(), "key")
		reader := rlock(w, ours, "key")
		_, err := ours.TryLock(w.Context(), "key")
		var held *asynclock.HeldError
		if !errors.As(err, &held) {
			w.Fatal(err)
		}
		if held.Token != reader.Token() {
			w.Errorf("HeldError.Token: got %d, the lease has %d", held.Token, reader.Token())
		}
		if _, err := ours.ForceUnlock(w.Context(), "key", held.Token); err != nil {
			w.Errorf("ForceUnlock with the token of the HeldError: %v", err)
		}
	})
}

// A reader's context is under its own lease. When that has ended, the context lets no later readers pass a writer.
func TestTheContextOfAnUnlockedReaderPassesNoWriter(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(asynclock.WithReentry(true)), w.client()
		reader := rlock(w, ours, "key")
		detached := context.WithoutCancel(reader.Context())
		other := rlock(w, ours, "key")
		unlock(w, reader)
		writer := w.ask(w.Context(), theirs, "key")
		late := w.askBy(detached, ours.RLock, "key")
		late.waits()
		unlock(w, other)
		unlock(w, writer.has())
		unlock(w, late.has())
	})
}

// A lease's contexts have ended before the next holder in the client has the key.
func TestContextsEndBeforeTheHandoff(t *testing.T) {
	c, err := asynclock.New(asynclocktest.New(), asynclock.WithoutLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer abandon(c)
	early := 0
	const rounds = 50
	for range rounds {
		first := lock(t, c, "key")
		var inner []context.Context
		for range 2000 { // requests that work under the lease
			ctx, cancel := context.WithCancel(first.Context())
			defer cancel()
			inner = append(inner, ctx)
		}
		waiting, got := make(chan struct{}), make(chan int)
		go func() {
			results := c.LockChan(context.Background(), "key")
			close(waiting)
			r := <-results
			lasting := 0
			for _, ctx := range inner {
				if ctx.Err() == nil {
					lasting++
				}
			}
			l, err := r.Lease()
			if err != nil {
				t.Error(err)
			} else {
				unlock(t, l)
			}
			got <- lasting
		}()
		<-waiting
		unlock(t, first)
		if <-got > 0 {
			early++
		}
	}
	if early > 0 {
		t.Errorf("%d of %d next holders had the key while contexts of the lease before had not ended", early, rounds)
	}
}
