// SPDX-License-Identifier: Apache-2.0

package migratelock_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/contrib/migratelock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
)

// Many processes start at once, and none may begin before a gate is open. A table that is made twice is an error.
func TestEachMigrationRunsOnce(t *testing.T) {
	t.Parallel()
	const processes = 6
	w := newWorld(t)
	gate := w.process(nil)
	lease := w.hold(gate.locks)
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
		info, err := gate.locks.Inspect(t.Context(), key)
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
		other := w.process(nil)
		defer w.hold(other.locks).Unlock(w.Context())
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

func TestASilentStoreStopsUp(t *testing.T) {
	story(t, func(w *world) {
		p := w.process(nil)
		defer w.store.Cut(0)()
		if err := p.migrate.Up(); !errors.Is(err, asynclock.ErrUnreachable) || errors.Is(err, database.ErrLocked) {
			w.Errorf("got %v, want ErrUnreachable and not database.ErrLocked", err)
		}
		w.wantVersion(database.NilVersion)
	})
}

// The lease is lost during the second of three migrations. This is no bubble, because migrate leaves a goroutine
// with the third.
func TestNoMigrationBeginsAfterALoss(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	runs := 0
	p := w.process(func() error {
		if runs++; runs < 2 {
			return nil
		}
		owner := w.store.Calls(asynclocktest.Acquire.Any)[0].Owner
		w.store.Tell(0, store.Event{Kind: store.EventLost, Owner: owner, Err: asynclock.ErrForced})
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
		w.store.Cut(0)
		pass(asynclock.DefaultTTL)
		if err := p.driver.SetVersion(1, true); !errors.Is(err, asynclock.ErrLost) {
			w.Errorf("got %v, want ErrLost", err)
		}
		w.wantVersion(database.NilVersion)
		if err := p.driver.Unlock(); !errors.Is(err, asynclock.ErrLost) {
			w.Errorf("Unlock: got %v, want ErrLost", err)
		}
	})
}

// The client hears of the loss by the answer to Unlock only.
func TestUpReturnsALoss(t *testing.T) {
	story(t, func(w *world) {
		p := w.process(func() error {
			_, err := w.store.Expire(w.Context(), key)
			return err
		})
		if err := p.migrate.Up(); !errors.Is(err, asynclock.ErrLost) {
			w.Errorf("got %v, want ErrLost", err)
		}
		w.wantVersion(3)
	})
}

// The lease covered the migrations, so a service may start.
func TestAnUnlockWithoutAnAnswerIsNoError(t *testing.T) {
	story(t, func(w *world) {
		p, other := w.process(nil), w.process(nil)
		stop := w.store.Every(asynclocktest.Release.On(key), asynclocktest.Refuse)
		if err := p.migrate.Up(); err != nil {
			w.Errorf("got %v, want no error", err)
		}
		pass(asynclock.DefaultTTL)
		stop()
		w.wantFree(other.locks)
	})
}

// A Migrate may call Lock again although the Lock before it, which it gave up, has the key by now.
func TestADriverIsLockedOnce(t *testing.T) {
	story(t, func(w *world) {
		p, other := w.process(nil), w.process(nil)
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
		w.wantFree(other.locks)
	})
}

func TestCloseUnlocks(t *testing.T) {
	story(t, func(w *world) {
		p, other := w.process(nil), w.process(nil)
		if err := p.driver.Lock(); err != nil {
			w.Fatal(err)
		}
		if err := p.driver.Close(); err != nil {
			w.Error(err)
		}
		w.wantFree(other.locks)
	})
}

// migrate does not unlock when a driver panics. These are its calls until then: of a whole Up it would leave
// goroutines in the bubble.
func TestCloseUnlocksAfterAPanic(t *testing.T) {
	story(t, func(w *world) {
		p, other := w.process(func() error { panic("a bug") }), w.process(nil)
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
		pass(10 * asynclock.DefaultTTL)
		if _, err := other.locks.TryLock(w.Context(), key); !errors.Is(err, asynclock.ErrHeld) {
			w.Errorf("before Close: got %v, want ErrHeld", err)
		}
		if err := p.driver.Close(); err != nil {
			w.Error(err)
		}
		w.wantFree(other.locks)
	})
}

// migrate can't stop a Lock that it has given up. Nobody would unlock what it takes after Close.
func TestCloseEndsALockThatWaits(t *testing.T) {
	story(t, func(w *world) {
		p, other := w.process(nil, asynclock.WithWait(time.Hour)), w.process(nil)
		lease := w.hold(other.locks)
		done := make(chan error, 1)
		go func() { done <- p.driver.Lock() }()
		pass(time.Minute)
		if err := p.driver.Close(); err != nil {
			w.Error(err)
		}
		if err := <-done; !errors.Is(err, context.Canceled) {
			w.Errorf("got %v, want Canceled", err)
		}
		pass(time.Second) // it leaves its queue
		lease.Unlock(w.Context())
		w.wantFree(other.locks)
	})
}

func TestOpenWrapsToo(t *testing.T) {
	story(t, func(w *world) {
		p, other := w.process(nil), w.process(nil)
		opened, err := p.driver.Open("sqlite://" + filepath.Join(w.TempDir(), "opened.db"))
		if err != nil {
			w.Fatal(err)
		}
		if err := opened.Lock(); err != nil {
			w.Fatal(err)
		}
		if _, err := other.locks.TryLock(w.Context(), key); !errors.Is(err, asynclock.ErrHeld) {
			w.Errorf("got %v, want ErrHeld", err)
		}
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
		for name, tt := range map[string]struct{ got, want error }{
			"no driver":  {made(nil, p.locks, key), asynclock.ErrInvalidOption},
			"no client":  {made(p.driver, nil, key), asynclock.ErrInvalidOption},
			"no key":     {made(p.driver, p.locks, ""), asynclock.ErrInvalidKey},
			"nil option": {made(p.driver, p.locks, key, nil), asynclock.ErrInvalidOption},
		} {
			if !errors.Is(tt.got, tt.want) {
				w.Errorf("%s: got %v, want %v", name, tt.got, tt.want)
			}
		}
	})
}
