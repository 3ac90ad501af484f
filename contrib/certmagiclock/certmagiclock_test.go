// SPDX-License-Identifier: Apache-2.0

package certmagiclock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/contrib/certmagiclock"
	"github.com/asynclock/asynclock-go/internal/test/kit/adapterkit"
)

func TestOneInstanceAtATime(t *testing.T) {
	story(t, func(w *world) {
		a, b := w.instance(), w.instance()
		for range 2 { // in both directions
			w.lock(a)
			w.wantTryLock(b, false)
			done := make(chan error, 1)
			go func() { done <- b.Lock(w.Context(), "site") }()
			if adapterkit.Pass(time.Minute); len(done) > 0 {
				w.Errorf("Lock returned %v while another held the name", <-done)
			}
			w.unlock(a)
			if synctest.Wait(); len(done) == 0 {
				w.Fatal("Lock waits for a name that is free")
			}
			if err := <-done; err != nil {
				w.Fatal(err)
			}
			w.wantTryLock(a, false)
			w.unlock(b)
			w.wantTryLock(a, true)
			a, b = b, a
		}
	})
}

func TestKeysAreThePrefixAndTheName(t *testing.T) {
	story(t, func(w *world) {
		s := w.instance()
		w.lock(s)
		w.WantHeld("test:site")
		w.unlock(s)
	})
}

func TestLockEndsWithItsContext(t *testing.T) {
	story(t, func(w *world) {
		a, b := w.instance(), w.instance()
		w.lock(a)
		defer w.unlock(a)
		ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
		defer cancel()
		if err := b.Lock(ctx, "site"); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, asynclock.ErrHeld) {
			w.Errorf("got %v, want DeadlineExceeded and ErrHeld", err)
		}
	})
}

// certmagic requests up to 30 days. A process that dies must not lock the name for as long.
func TestRenewLockLeaseDoesNotLengthenTheLease(t *testing.T) {
	story(t, func(w *world) {
		dead, other := w.instance(), w.instance()
		w.lock(dead)
		for _, d := range []time.Duration{0, time.Millisecond, time.Hour, 720 * time.Hour} {
			if err := dead.RenewLockLease(w.Context(), "site", d); err != nil {
				w.Errorf("RenewLockLease for %v: got %v", d, err)
			}
		}
		resume := w.Store.Pause(0)
		adapterkit.Pass(asynclock.DefaultTTL)
		w.wantTryLock(other, true)
		resume()
		if err := dead.Unlock(w.Context(), "site"); !errors.Is(err, asynclock.ErrLost) {
			w.Errorf("Unlock of a process that slept: got %v, want ErrLost", err)
		}
	})
}

// The watchdog renews also if the options say that it should not.
func TestALeaseIsRenewedInAnyCase(t *testing.T) {
	story(t, func(w *world) {
		s := w.instance(asynclock.WithRenewal(false))
		w.lock(s)
		adapterkit.Pass(10 * asynclock.DefaultTTL)
		w.wantTryLock(w.instance(), false)
		w.unlock(s)
	})
}

func TestRenewLockLeaseTakesALostKeyAnew(t *testing.T) {
	story(t, func(w *world) {
		s, other := w.instance(), w.instance()
		w.lock(s)
		w.Expire("test:site")
		if err := s.RenewLockLease(w.Context(), "site", time.Hour); err != nil {
			w.Fatal(err)
		}
		w.wantTryLock(other, false)
		w.unlock(s)
		w.wantTryLock(other, true)
	})
}

func TestRenewLockLeaseFailsWhileAnotherHasTheKey(t *testing.T) {
	story(t, func(w *world) {
		s, other := w.instance(), w.instance()
		w.lock(s)
		w.Expire("test:site")
		w.lock(other)
		for range 2 {
			if err := s.RenewLockLease(w.Context(), "site", time.Hour); !errors.Is(err, asynclock.ErrHeld) {
				w.Errorf("got %v, want ErrHeld", err)
			}
		}
		if err := s.Unlock(w.Context(), "site"); !errors.Is(err, asynclock.ErrLost) {
			w.Errorf("Unlock: got %v, want ErrLost", err)
		}
		w.wantTryLock(s, false)
		w.unlock(other)
	})
}

// Two callers of one process have had the name, and the first does not know that it lost it.
func TestALostNameOfTheSameProcess(t *testing.T) {
	story(t, func(w *world) {
		s, other := w.instance(), w.instance()
		w.lock(s)
		w.Expire("test:site")
		if err := s.RenewLockLease(w.Context(), "other", time.Hour); !errors.Is(err, certmagiclock.ErrNotLocked) {
			w.Errorf("RenewLockLease of another name: got %v, want ErrNotLocked", err)
		}
		adapterkit.Pass(asynclock.DefaultTTL) // a renewal finds out
		w.lock(s)
		if err := s.RenewLockLease(w.Context(), "site", time.Hour); !errors.Is(err, asynclock.ErrLost) {
			w.Errorf("RenewLockLease: got %v, want ErrLost, because nobody knows whose call it is", err)
		}
		if err := s.Unlock(w.Context(), "site"); !errors.Is(err, asynclock.ErrLost) {
			w.Errorf("the first Unlock: got %v, want ErrLost", err)
		}
		w.wantTryLock(other, false)
		w.unlock(s)
		w.wantTryLock(other, true)
		if err := s.Unlock(w.Context(), "site"); !errors.Is(err, certmagiclock.ErrNotLocked) {
			w.Errorf("one Unlock too many: got %v, want ErrNotLocked", err)
		}
	})
}

func TestASilentStoreIsAnError(t *testing.T) {
	story(t, func(w *world) {
		s, late := w.instance(), w.instance()
		w.lock(s)
		mendFirst, mendSecond := w.Store.Cut(0), w.Store.Cut(1)
		if err := late.Lock(w.Context(), "site"); !errors.Is(err, asynclock.ErrUnreachable) {
			w.Errorf("Lock: got %v, want ErrUnreachable", err)
		}
		if ok, err := late.TryLock(w.Context(), "site"); ok || !errors.Is(err, asynclock.ErrUnreachable) {
			w.Errorf("TryLock: got %t, %v, want ErrUnreachable", ok, err)
		}
		if err := s.RenewLockLease(w.Context(), "site", time.Hour); err == nil {
			w.Error("RenewLockLease: got no error, want one")
		}
		mendFirst()
		mendSecond()
		if err := s.RenewLockLease(w.Context(), "site", time.Hour); err != nil {
			w.Errorf("RenewLockLease afterwards: got %v", err)
		}
		w.unlock(s)
	})
}

func TestAnUnlockThatFailsSaysSo(t *testing.T) {
	story(t, func(w *world) {
		s := w.instance()
		w.lock(s)
		defer w.Store.Every(asynclocktest.Release.On("test:site"), asynclocktest.Refuse)()
		if err := s.Unlock(w.Context(), "site"); !errors.Is(err, asynclock.ErrUnreachable) {
			w.Errorf("got %v, want ErrUnreachable", err)
		}
		adapterkit.Pass(asynclock.DefaultTTL)
		other := w.instance()
		if ok, err := other.TryLock(w.Context(), "site"); !ok || err != nil {
			w.Errorf("after the TTL: got %t, %v, want the name free", ok, err)
		}
		_ = other.Unlock(w.Context(), "site") // is refused, too
	})
}

// Everything except the locks is the inner storage's.
func TestTheRestIsTheInnerStorages(t *testing.T) {
	story(t, func(w *world) {
		s := w.instance()
		w.lock(s)
		defer w.unlock(s)
		if err := s.Store(w.Context(), "a/b", []byte("value")); err != nil {
			w.Fatal(err)
		}
		if got, err := w.files.Load(w.Context(), "a/b"); err != nil || string(got) != "value" {
			w.Errorf("got %q, %v, want what was stored", got, err)
		}
		if _, err := os.Stat(filepath.Join(w.files.Path, "locks")); !errors.Is(err, os.ErrNotExist) {
			w.Errorf("the inner storage's locks: got %v, want none", err)
		}
	})
}

func TestBadInputIsRefused(t *testing.T) {
	story(t, func(w *world) {
		made := func(inner certmagic.Storage, locks *asynclock.Client, prefix string, options ...asynclock.LockOption) error {
			_, err := certmagiclock.Wrap(inner, locks, prefix, options...)
			return err
		}
		adapterkit.WantRefusals(w, func(locks *asynclock.Client, options ...asynclock.LockOption) error {
			return made(w.files, locks, "", options...)
		})
		locks := w.Client()
		adapterkit.WantResults(w, adapterkit.Results{
			"no storage":  {made(nil, locks, ""), asynclock.ErrInvalidOption},
			"long prefix": {made(w.files, locks, strings.Repeat("x", asynclock.MaxKeyLen)), asynclock.ErrInvalidKey},
			"zero":        {new(certmagiclock.Storage).Lock(w.Context(), "x"), asynclock.ErrInvalidOption},
			"a wait":      {made(w.files, locks, "", asynclock.WithWait(time.Second)), nil},
		})
		w.wantTryLock(w.instance(asynclock.WithWait(time.Second)), true) // it does not wait, whatever the options say
	})
}
