// SPDX-License-Identifier: Apache-2.0

package certmagiclock_test

import (
	"testing"

	"github.com/caddyserver/certmagic"
	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/contrib/certmagiclock"
	"github.com/asynclock/asynclock-go/internal/test/kit/adapterkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A world has a place for certificates and one for locks, which all instances share.
type world struct {
	*adapterkit.World
	files *certmagic.FileStorage
}

// story tells a story in a bubble.
func story(t *testing.T, tell func(w *world)) {
	t.Helper()
	adapterkit.Story(t, func(w *adapterkit.World) { tell(&world{w, &certmagic.FileStorage{Path: w.TempDir()}}) })
}

// instance makes the storage of an instance.
func (w *world) instance(options ...asynclock.LockOption) *certmagiclock.Storage {
	w.Helper()
	s, err := certmagiclock.Wrap(w.files, w.Client(), "test:", options...)
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

// wantTryLock checks whether another instance can lock the name "site".
func (w *world) wantTryLock(s certmagic.TryLocker, want bool) {
	w.Helper()
	got, err := s.TryLock(w.Context(), "site")
	if err != nil || got != want {
		w.Errorf("TryLock: got %t, %v, want %t", got, err, want)
	}
	if got {
		w.unlock(s.(certmagic.Locker))
	}
}
