// SPDX-License-Identifier: Apache-2.0

package gooselock_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/contrib/gooselock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/adapterkit"
)

// Many processes start at once, and all of them have seen that there is something to do before one may begin.
func TestEachMigrationRunsOnce(t *testing.T) {
	t.Parallel()
	const processes = 6
	w := newWorld(adapterkit.NewWorld(t))
	var mu sync.Mutex
	var runs []int
	open := false
	migration := func(number int) func(context.Context, *sql.Tx) error {
		return func(context.Context, *sql.Tx) error {
			mu.Lock()
			defer mu.Unlock()
			runs = append(runs, number)
			if !open {
				t.Error("a migration ran while another process had the key")
			}
			return nil
		}
	}
	gate := w.process()
	if err := gate.locker.Lock(t.Context(), gate.db); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, processes)
	for range processes {
		g := w.provider(w.process(), migration(1), migration(2), migration(3))
		go func() {
			_, err := g.Up(t.Context())
			done <- err
		}()
	}
	kit.Eventually(t, "everybody waits", func() bool {
		info, err := gate.locks.Inspect(t.Context(), key)
		return err == nil && info.Waiters+len(done) == processes
	})
	mu.Lock()
	open = true
	mu.Unlock()
	if err := gate.locker.Unlock(t.Context(), gate.db); err != nil {
		t.Fatal(err)
	}
	for range processes {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(runs, []int{1, 2, 3}) {
		t.Errorf("got migrations %v, want each once, in their order", runs)
	}
}

func TestUpWaitsForAnother(t *testing.T) {
	story(t, func(w *world) {
		p, other := w.process(), w.process()
		g := w.provider(p, nothing)
		if err := other.locker.Lock(w.Context(), other.db); err != nil {
			w.Fatal(err)
		}
		time.AfterFunc(time.Minute, func() {
			if err := other.locker.Unlock(w.Context(), other.db); err != nil {
				w.Error(err)
			}
		})
		begin := time.Now()
		if _, err := g.Up(w.Context()); err != nil || time.Since(begin) < time.Minute {
			w.Errorf("got %v after %v, want no error after a minute", err, time.Since(begin))
		}
		w.WantFree(key)
	})
}

func TestAWaitHasAnEnd(t *testing.T) {
	story(t, func(w *world) {
		p, other := w.process(asynclock.WithWait(time.Minute)), w.process()
		g := w.provider(p, nothing)
		if err := other.locker.Lock(w.Context(), other.db); err != nil {
			w.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(w.Context(), time.Hour)
		defer cancel()
		begin := time.Now()
		if _, err := g.Up(ctx); !errors.Is(err, asynclock.ErrHeld) || time.Since(begin) > time.Minute || w.version(p) != 0 {
			w.Errorf("got %v at version %d, want ErrHeld and no migration", err, w.version(p))
		}
		if err := other.locker.Unlock(w.Context(), other.db); err != nil {
			w.Error(err)
		}
	})
}

func TestUp(t *testing.T) {
	adapterkit.Test(t, adapterkit.Adapter{
		Key: key,
		Open: func(w *adapterkit.World, work func(context.Context) error) func() error {
			p := newWorld(w).process(asynclock.WithWait(0))
			return func() error {
				fresh := newWorld(w)
				p.db = fresh.open()
				_, err := fresh.provider(p, func(ctx context.Context, _ *sql.Tx) error { return work(ctx) }).Up(w.Context())
				return err
			}
		},
		Held:   asynclock.ErrHeld,
		Silent: asynclock.ErrUnreachable,
		Lost:   asynclock.ErrLost,
	})
}

// As the package comment says.
func TestUpUnderALeaseStopsAtALoss(t *testing.T) {
	story(t, func(w *world) {
		p := w.process(asynclock.WithReentry(true))
		g := w.provider(p, nothing, func(ctx context.Context, _ *sql.Tx) error {
			w.Store.Cut(0)
			<-ctx.Done()
			return context.Cause(ctx)
		}, nothing)
		err := p.locks.WithLock(w.Context(), key, func(ctx context.Context, _ *asynclock.Lease) error {
			_, err := g.Up(ctx)
			return err
		})
		if !errors.Is(err, asynclock.ErrLost) || w.version(p) != 1 {
			w.Errorf("got %v at version %d, want ErrLost and version 1", err, w.version(p))
		}
	})
}

func TestUpUnderALeaseUnlocks(t *testing.T) {
	story(t, func(w *world) {
		p := w.process(asynclock.WithReentry(true))
		g := w.provider(p, nothing)
		err := p.locks.WithLock(w.Context(), key, func(ctx context.Context, _ *asynclock.Lease) error {
			_, err := g.Up(ctx)
			return err
		})
		if err != nil || w.version(p) != 1 {
			w.Errorf("got %v at version %d, want version 1", err, w.version(p))
		}
		w.WantFree(key)
	})
}

func TestAFailedMigrationUnlocks(t *testing.T) {
	story(t, func(w *world) {
		p := w.process()
		defect := errors.New("a defect")
		g := w.provider(p, func(context.Context, *sql.Tx) error { return defect })
		if _, err := g.Up(w.Context()); !errors.Is(err, defect) {
			w.Errorf("got %v, want the migration's error", err)
		}
		w.WantFree(key)
	})
}

func TestBadInputIsRefused(t *testing.T) {
	story(t, func(w *world) {
		adapterkit.WantRefusals(w, func(locks *asynclock.Client, options ...asynclock.LockOption) error {
			_, err := gooselock.New(locks, key, options...)
			return err
		})
		p := w.process()
		_, noKey := gooselock.New(p.locks, "")
		adapterkit.WantResults(w, adapterkit.Results{
			"no key":           {noKey, asynclock.ErrInvalidKey},
			"nil Locker":       {(*gooselock.Locker)(nil).Lock(w.Context(), p.db), asynclock.ErrInvalidOption},
			"nil, Unlock":      {(*gooselock.Locker)(nil).Unlock(w.Context(), p.db), gooselock.ErrNotLocked},
			"zero Locker":      {new(gooselock.Locker).Lock(w.Context(), p.db), asynclock.ErrInvalidOption},
			"Unlock of nobody": {p.locker.Unlock(w.Context(), p.db), gooselock.ErrNotLocked},
		})
	})
}
