// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// enter begins a write that lasts until leave is called.
func enter(t *testing.T, g *Gate, key string, token int64) (leave func() error) {
	t.Helper()
	in, out, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() { // ends with the write
		done <- g.Do(context.Background(), Stamp{key, token}, func() error {
			close(in)
			<-out
			return nil
		})
	}()
	<-in
	return func() error {
		close(out)
		return <-done
	}
}

// A later holder waits for the write of an earlier one that is inside: its own comes after.
func TestGateHasOneHolderInside(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g Gate
		leave := enter(t, &g, "k", 5)
		var entered bool
		done := make(chan error, 1)
		go func() { // ends with its write
			done <- g.Do(t.Context(), Stamp{"k", 7}, func() error {
				entered = true
				return nil
			})
		}()
		synctest.Wait()
		if entered {
			t.Error("the later holder is inside together with the earlier one")
		}
		if err := g.Do(t.Context(), Stamp{"other", 1}, func() error { return nil }); err != nil {
			t.Errorf("another key: got %v, want no error", err)
		}
		if err := errors.Join(leave(), <-done); err != nil || !entered {
			t.Errorf("got %v, entered %t, want both let in", err, entered)
		}
	})
}

// The check is of the moment at which a holder gets in, not of that at which it came.
func TestGateChecksInside(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g Gate
		leave := enter(t, &g, "k", 5)
		queue := func(token int64) <-chan error {
			done := make(chan error, 1)
			go func() { done <- g.Do(t.Context(), Stamp{"k", token}, func() error { return nil }) }() // ends when it was inside, or is refused
			synctest.Wait()
			return done
		}
		next, overtaken := queue(7), queue(6)
		if err := errors.Join(leave(), <-next); err != nil {
			t.Error(err)
		}
		if err := <-overtaken; !errors.Is(err, ErrStale) {
			t.Errorf("got %v, want ErrStale", err)
		}
	})
}

func TestGateWaitsNoLongerThanItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g Gate
		leave := enter(t, &g, "k", 5)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errWrite)
		defer cancel()
		if err := g.Do(ctx, Stamp{"k", 7}, func() error { t.Error("let in"); return nil }); !errors.Is(err, errWrite) {
			t.Errorf("got %v, want the context's cause", err)
		}
		if err := leave(); err != nil {
			t.Error(err)
		}
		if err := g.Do(t.Context(), Stamp{"k", 6}, func() error { return nil }); err != nil {
			t.Errorf("6 after a 7 that never got in: got %v, want no error", err)
		}
	})
}

func TestGateIsLeftByAPanic(t *testing.T) {
	t.Parallel()
	var g Gate
	func() {
		defer func() { _ = recover() }()
		_ = g.Do(t.Context(), Stamp{"k", 7}, func() error { panic("boom") })
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := g.Do(ctx, Stamp{"k", 7}, func() error { return nil }); err != nil {
		t.Errorf("after a panic: got %v, want no error", err)
	}
}

// Writers of many leases at once: what was let in never goes back.
func TestGateKeepsWritersInOrder(t *testing.T) {
	t.Parallel()
	var g Gate
	var written []int64 // guarded by the Gate
	var writers sync.WaitGroup
	for token := range int64(64) {
		writers.Go(func() {
			err := g.Do(t.Context(), Stamp{"k", token + 1}, func() error {
				written = append(written, token+1)
				return nil
			})
			if err != nil && !errors.Is(err, ErrStale) {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	for i := 1; i < len(written); i++ {
		if written[i] <= written[i-1] {
			t.Fatalf("got %v, want it to rise", written)
		}
	}
	if n := len(written); n == 0 || written[n-1] != 64 {
		t.Errorf("got %v, want 64 to be the last", written)
	}
}

// A holder of several keys waits for one after the other, in their order. So it has nothing that the holder of a smaller
// key could wait for.
func TestGateTakesKeysInTheirOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g Gate
		leave := enter(t, &g, "a", 5)
		done := make(chan error, 1)
		go func() { done <- g.DoAll(t.Context(), Stamps{{"b", 5}, {"a", 6}}, func() error { return nil }) }() // ends after leave
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.Do(ctx, Stamp{"b", 5}, func() error { return nil }); err != nil {
			t.Errorf("the larger key meanwhile: got %v, want no error", err)
		}
		if err := errors.Join(leave(), <-done); err != nil {
			t.Error(err)
		}
		err := g.DoAll(t.Context(), Stamps{{"a", 7}, {"b", 4}}, func() error { t.Error("let in"); return nil })
		if !errors.Is(err, ErrStale) {
			t.Errorf("one stale token: got %v, want ErrStale", err)
		}
	})
}
