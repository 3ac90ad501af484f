// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

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

// A reader's context is under its own lease. The tenure may go on for others.
func TestTheContextOfAnUnlockedReader(t *testing.T) {
	for _, unrelated := range []bool{false, true} {
		scene(t, fmt.Sprint("unrelated readers: ", unrelated), func(w *world) {
			c := w.client(asynclock.WithReentry(true))
			if unrelated {
				other := rlock(w, c, "key")
				go func() { time.Sleep(time.Second); _ = other.Unlock(context.Background()) }()
			}
			reader := rlock(w, c, "key")
			detached := context.WithoutCancel(reader.Context())
			unlock(w, reader)
			l, err := c.Lock(detached, "key")
			if err != nil {
				w.Errorf("unrelated reader %v: Lock under the context of a lease that was unlocked: %v", unrelated, err)
				return
			}
			unlock(w, l)
		})
	}
}

// Nor does such a context let later readers pass a writer.
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
