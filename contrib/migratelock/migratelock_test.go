// SPDX-License-Identifier: Apache-2.0

package migratelock_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/contrib/migratelock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/adapterkit"
	"github.com/asynclock/asynclock-go/store"
)

// Many processes start at once, and none may begin before a gate is open. A table that is made twice is an error.
func TestEachMigrationRunsOnce(t *testing.T) {
	t.Parallel()
	const processes = 6
	w := newWorld(adapterkit.NewWorld(t))
	gate := w.Client()
	lease := w.Hold(key)
	var open atomic.Bool
	var runs atomic.Int64
	before := func() error {
		if runs.Add(1); !open.Load() {
			t.Error("a migration ran while another process had the key")
		}
		return nil
	}
	done := make(chan error, processes)
	for range processes {
		p := w.process(before, asynclock.WithWait(time.Minute))
		p.migrate.LockTimeout = 2 * time.Minute
		go func() { done <- p.migrate.Up() }()
	}
	kit.Eventually(t, "everybody waits", func() bool {
		info, err := gate.Inspect(t.Context(), key)
		return err == nil && info.Waiters+len(done) == processes
	})
	open.Store(true)
	lease.Unlock(t.Context())
	idle := 0
	for range processes {
		switch err := <-done; {
		case errors.Is(err, migrate.ErrNoChange):
			idle++
		case err != nil:
			t.Error(err)
		}
	}
	if runs.Load() != 3 || idle != processes-1 {
		t.Errorf("got %d migrations and %d processes with nothing to do, want 3 and %d", runs.Load(), idle, processes-1)
	}
	w.wantVersion(3)
}

func TestAWaitEndsBeforeMigrateGivesUp(t *testing.T) {
	story(t, func(w *world) {
		defer w.Hold(key).Unlock(w.Context())
		begin := time.Now()
		err := w.process(nil).migrate.Up()
		if !errors.Is(err, database.ErrLocked) || !errors.Is(err, asynclock.ErrHeld) {
			w.Errorf("got %v, want database.ErrLocked and ErrHeld", err)
		}
		if waited := time.Since(begin); waited != migratelock.DefaultWait || waited >= migrate.DefaultLockTimeout {
			w.Errorf("waited for %v, want %v, less than migrate waits", waited, migratelock.DefaultWait)
		}
		w.wantVersion(database.NilVersion)
	})
}

func TestUp(t *testing.T) {
	adapterkit.Test(t, adapterkit.Adapter{
		Key: key,
		Open: func(w *adapterkit.World, work func(context.Context) error) func() error {
			locks := w.Client()
			return func() error {
				first := sync.OnceValue(func() error { return work(w.Context()) }) // of three migrations
				err := newWorld(w).processOf(locks, first, asynclock.WithWait(0)).migrate.Up()
				if errors.Is(err, database.ErrLocked) != errors.Is(err, asynclock.ErrHeld) {
					w.Errorf("got %v, want database.ErrLocked if the key is held and else not", err)
				}
				return err
			}
		},
		Held:   asynclock.ErrHeld,
		Silent: asynclock.ErrUnreachable,
		Lost:   asynclock.ErrLost,
	})
}

// The lease is lost during the second of three migrations. This is no bubble, because migrate leaves a goroutine
// with the third.
func TestNoMigrationBeginsAfterALoss(t *testing.T) {
	t.Parallel()
	w := newWorld(adapterkit.NewWorld(t))
	runs := 0
	p := w.process(func() error {
		if runs++; runs < 2 {
			return nil
		}
		owner := w.Store.Calls(asynclocktest.Acquire.Any)[0].Owner
		w.Store.Tell(0, store.Event{Kind: store.EventLost, Owner: owner, Err: asynclock.ErrForced})
		return nil
	})
	if err := p.migrate.Up(); !errors.Is(err, asynclock.ErrForced) {
		w.Errorf("got %v, want ErrForced", err)
	}
	w.wantVersion(2) // and not dirty
	if runs != 2 {
		w.Errorf("got %d migrations, want 2", runs)
	}
}

// A lease may also be lost between two migrations.
func TestSetVersionRefusesToBeginAfterALoss(t *testing.T) {
	story(t, func(w *world) {
		p := w.process(nil)
		if err := p.driver.Lock(); err != nil {
			w.Fatal(err)
		}
		w.Store.Cut(0)
		adapterkit.Pass(asynclock.DefaultTTL)
		if err := p.driver.SetVersion(1, true); !errors.Is(err, asynclock.ErrLost) {
			w.Errorf("got %v, want ErrLost", err)
		}
		w.wantVersion(database.NilVersion)
		if err := p.driver.Unlock(); !errors.Is(err, asynclock.ErrLost) {
			w.Errorf("Unlock: got %v, want ErrLost", err)
		}
	})
}

// A Migrate may call Lock again although the Lock before it, which it gave up, has the key by now.
func TestADriverIsLockedOnce(t *testing.T) {
	story(t, func(w *world) {
		p := w.process(nil)
		if err := p.driver.Unlock(); !errors.Is(err, database.ErrNotLocked) {
			w.Errorf("Unlock of nothing: got %v, want database.ErrNotLocked", err)
		}
		if err := p.driver.Lock(); err != nil {
			w.Fatal(err)
		}
		begin := time.Now()
		if err := p.driver.Lock(); !errors.Is(err, database.ErrLocked) || time.Since(begin) > 0 {
			w.Errorf("got %v after %v, want database.ErrLocked at once", err, time.Since(begin))
		}
		if err := p.driver.Unlock(); err != nil {
			w.Error(err)
		}
		w.WantFree(key)
	})
}

func TestCloseUnlocks(t *testing.T) {
	story(t, func(w *world) {
		p := w.process(nil)
		if err := p.driver.Lock(); err != nil {
			w.Fatal(err)
		}
		if err := p.driver.Close(); err != nil {
			w.Error(err)
		}
		w.WantFree(key)
	})
}

// migrate does not unlock when a driver panics. These are its calls until then: of a whole Up it would leave
// goroutines in the bubble.
func TestCloseUnlocksAfterAPanic(t *testing.T) {
	story(t, func(w *world) {
		p := w.process(func() error { panic("a bug") })
		func() {
			defer func() {
				if recover() == nil {
					w.Error("got no panic, want the driver's")
				}
			}()
			if err := p.driver.Lock(); err != nil {
				w.Fatal(err)
			}
			_ = p.driver.Run(strings.NewReader("a migration"))
		}()
		adapterkit.Pass(10 * asynclock.DefaultTTL)
		w.WantHeld(key)
		if err := p.driver.Close(); err != nil {
			w.Error(err)
		}
		w.WantFree(key)
	})
}

// migrate can't stop a Lock that it has given up. Nobody would unlock what it takes after Close.
func TestCloseEndsALockThatWaits(t *testing.T) {
	story(t, func(w *world) {
		p := w.process(nil, asynclock.WithWait(time.Hour))
		lease := w.Hold(key)
		done := make(chan error, 1)
		go func() { done <- p.driver.Lock() }()
		adapterkit.Pass(time.Minute)
		if err := p.driver.Close(); err != nil {
			w.Error(err)
		}
		if err := <-done; !errors.Is(err, context.Canceled) {
			w.Errorf("got %v, want Canceled", err)
		}
		adapterkit.Pass(time.Second) // it leaves its queue
		lease.Unlock(w.Context())
		w.WantFree(key)
	})
}

func TestOpenWrapsToo(t *testing.T) {
	story(t, func(w *world) {
		p := w.process(nil)
		opened, err := p.driver.Open("sqlite://" + filepath.Join(w.TempDir(), "opened.db"))
		if err != nil {
			w.Fatal(err)
		}
		if err := opened.Lock(); err != nil {
			w.Fatal(err)
		}
		w.WantHeld(key)
		if err := opened.Close(); err != nil {
			w.Error(err)
		}
		if _, err := p.driver.Open(":"); err == nil {
			w.Error("a bad URL: got no error")
		}
	})
}

func TestBadInputIsRefused(t *testing.T) {
	story(t, func(w *world) {
		p := w.process(nil)
		made := func(inner database.Driver, locks *asynclock.Client, key string, options ...asynclock.LockOption) error {
			_, err := migratelock.Wrap(inner, locks, key, options...)
			return err
		}
		adapterkit.WantRefusals(w, func(locks *asynclock.Client, options ...asynclock.LockOption) error {
			return made(p.driver, locks, key, options...)
		})
		adapterkit.WantResults(w, adapterkit.Results{
			"no driver": {made(nil, p.locks, key), asynclock.ErrInvalidOption},
			"no key":    {made(p.driver, p.locks, ""), asynclock.ErrInvalidKey},
		})
	})
}
