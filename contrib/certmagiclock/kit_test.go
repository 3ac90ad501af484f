// SPDX-License-Identifier: Apache-2.0

package certmagiclock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/contrib/certmagiclock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A world has a place for certificates and one for locks, which all instances share.
type world struct {
	*testing.T
	store *asynclocktest.Store
	files *certmagic.FileStorage
}

// story tells a story in a bubble.
func story(t *testing.T, tell func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tell(&world{t, asynclocktest.New(), &certmagic.FileStorage{Path: t.TempDir()}})
	})
}

// client makes the client of an instance, which is closed with the test.
func (w *world) client() *asynclock.Client {
	w.Helper()
	locks, err := asynclock.New(w.store, asynclock.WithoutLogger())
	if err != nil {
		w.Fatal(err)
	}
	ended, end := context.WithCancel(context.Background())
	end()
	w.Cleanup(func() { locks.Close(ended) }) // which waits for a second, if a test has failed and left a lease
	return locks
}

// instance makes the storage of an instance.
func (w *world) instance(options ...asynclock.LockOption) *certmagiclock.Storage {
	w.Helper()
	s, err := certmagiclock.Wrap(w.files, w.client(), "test:", options...)
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// lock locks the name "site".
func (w *world) lock(s certmagic.Locker) {
	w.Helper()
	if err := s.Lock(w.Context(), "site"); err != nil {
		w.Fatal(err)
	}
}

// unlock unlocks the name "site".
func (w *world) unlock(s certmagic.Locker) {
	w.Helper()
	if err := s.Unlock(w.Context(), "site"); err != nil {
		w.Fatal(err)
	}
}

// wantFree checks whether another instance can lock the name "site".
func (w *world) wantFree(s certmagic.TryLocker, want bool) {
	w.Helper()
	got, err := s.TryLock(w.Context(), "site")
	if err != nil || got != want {
		w.Errorf("TryLock: got %t, %v, want %t", got, err, want)
	}
	if got {
		w.unlock(s.(certmagic.Locker))
	}
}

// pass lets time pass, and what happens in it be done.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
