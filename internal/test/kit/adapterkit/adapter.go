// SPDX-License-Identifier: Apache-2.0

package adapterkit

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

// An Adapter is a way in which a library runs work under a key.
type Adapter struct {
	Key string
	// Open makes a process in which the library runs the work. The function that it returns waits until the library
	// has tried once, and returns the error that a user of the library is told.
	Open  func(w *World, work func(ctx context.Context) error) (run func() error)
	Every time.Duration // between two tries, if the library has a clock; see Ticks

	Held   error // told if others hold the key; the work does not begin, or wait
	Silent error // told if the store is silent; the work does not begin
	Later  error // told in both cases and no other, or nil; the library tries again
	Lost   error // told of work that was done when its lease was lost

	Scoped bool // the work's context ends with the lease
	Panics bool // the library recovers from panics
}

// Test checks what each adapter promises.
func Test(t *testing.T, a Adapter) {
	t.Helper()
	for name, tell := range map[string]func(*World){
		"the work has the key":                 a.workHasTheKey,
		"a held key is a skip without waiting": a.heldKeyIsASkip,
		"a silent store is a skip":             a.silentStoreIsASkip,
		"a request that is denied is told":     a.requestThatIsDeniedIsTold,
		"an unlock finds a loss":               a.unlockFindsALoss,
		"an unlock has no answer":              a.unlockHasNoAnswer,
	} {
		t.Run(name, func(t *testing.T) { Story(t, tell) })
	}
	if a.Scoped {
		t.Run("a failure of the work is told", func(t *testing.T) { Story(t, a.failureOfTheWorkIsTold) })
		t.Run("the work is told of a loss", func(t *testing.T) { Story(t, a.workIsToldOfALoss) })
	}
	if a.Panics {
		t.Run("a panic unlocks", func(t *testing.T) { Story(t, a.panicUnlocks) })
	}
}

func (a Adapter) workHasTheKey(w *World) {
	var begun atomic.Int64
	run := a.Open(w, func(ctx context.Context) error {
		begun.Add(1)
		w.WantHeld(a.Key)
		if lease, ok := asynclock.LeaseFrom(ctx, a.Key); a.Scoped && (!ok || !lease.Valid(0)) {
			w.Errorf("got lease %v, want that of the key", lease)
		}
		return nil
	})
	for _, want := range []int64{1, 2} {
		if err := run(); err != nil || begun.Load() != want {
			w.Errorf("got %v and %d runs, want no error and %d", err, begun.Load(), want)
		}
		w.WantFree(a.Key)
	}
}

// heldKeyIsASkip also waits between two tries: work that waits for its key would run then.
func (a Adapter) heldKeyIsASkip(w *World) {
	var begun atomic.Int64
	run := a.Open(w, func(context.Context) error { begun.Add(1); return nil })
	lease, begin := w.Hold(a.Key), time.Now()
	if err := run(); !errors.Is(err, a.Held) || !a.comesLater(err) || begun.Load() > 0 || time.Since(begin) > a.Every*3/2 {
		w.Errorf("got %v and %d runs after %v, want %v and none at once", err, begun.Load(), time.Since(begin), a.Held)
	}
	lease.Unlock(w.Context())
	if Pass(a.Every / 3); begun.Load() > 0 {
		w.Error("the work ran between two tries, want it skipped until the next one")
	}
	if err := run(); err != nil || begun.Load() != 1 {
		w.Errorf("got %v and %d runs, want one when the key is free", err, begun.Load())
	}
}

func (a Adapter) silentStoreIsASkip(w *World) {
	var begun atomic.Int64
	run := a.Open(w, func(context.Context) error { begun.Add(1); return nil })
	mend := w.Store.Cut(0)
	if err := run(); !errors.Is(err, a.Silent) || !a.comesLater(err) || begun.Load() > 0 {
		w.Errorf("got %v and %d runs, want %v and none", err, begun.Load(), a.Silent)
	}
	mend()
	Pass(time.Second) // the client asks whether it has the key
	if err := run(); err != nil || begun.Load() != 1 {
		w.Errorf("got %v and %d runs after the store is back, want 1", err, begun.Load())
	}
}

// comesLater reports whether the library tries again. Most can't tell.
func (a Adapter) comesLater(err error) bool { return a.Later == nil || errors.Is(err, a.Later) }

// requestThatIsDeniedIsTold because the key can't be had by trying again, and somebody has to know.
func (a Adapter) requestThatIsDeniedIsTold(w *World) {
	run := a.Open(w, Never(w))
	w.Store.Next(asynclocktest.Acquire.Any, asynclocktest.Fail(asynclock.ErrDenied))
	if err := run(); !errors.Is(err, asynclock.ErrDenied) || a.Later != nil && a.comesLater(err) {
		w.Errorf("got %v, want ErrDenied and no other try", err)
	}
}

// failureOfTheWorkIsTold also if others hold a key that the work requests itself. That is its own affair.
func (a Adapter) failureOfTheWorkIsTold(w *World) {
	run := a.Open(w, func(context.Context) error { return &asynclock.HeldError{Key: "another"} })
	if err := run(); !errors.Is(err, asynclock.ErrHeld) || a.Later != nil && a.comesLater(err) {
		w.Errorf("got %v, want ErrHeld and no other try because of it", err)
	}
	w.WantFree(a.Key)
}

// unlockFindsALoss has the client hear of the loss by the answer to Unlock only.
func (a Adapter) unlockFindsALoss(w *World) {
	run := a.Open(w, func(context.Context) error { w.Expire(a.Key); return nil })
	if err := run(); !errors.Is(err, a.Lost) {
		w.Errorf("got %v, want %v", err, a.Lost)
	}
}

// unlockHasNoAnswer is no error, because the lease covered the work.
func (a Adapter) unlockHasNoAnswer(w *World) {
	stop := w.Store.Every(asynclocktest.Release.On(a.Key), asynclocktest.Refuse)
	var begun atomic.Int64
	if err := a.Open(w, func(context.Context) error { begun.Add(1); return nil })(); err != nil || begun.Load() != 1 {
		w.Errorf("got %v and %d runs, want no error and one", err, begun.Load())
	}
	Pass(asynclock.DefaultTTL)
	stop()
	w.WantFree(a.Key)
}

func (a Adapter) workIsToldOfALoss(w *World) {
	halfway := errors.New("stopped halfway")
	run := a.Open(w, func(ctx context.Context) error {
		w.Store.Cut(0)
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, asynclock.ErrNotRenewed) {
			w.Errorf("got cause %v, want ErrNotRenewed", cause)
		}
		return halfway
	})
	if err := run(); !errors.Is(err, halfway) || !errors.Is(err, asynclock.ErrLost) {
		w.Errorf("got %v, want both reasons", err)
	}
}

func (a Adapter) panicUnlocks(w *World) {
	run := a.Open(w, func(context.Context) error { panic("a defect") })
	if err := run(); err == nil {
		w.Error("got no error, want the panic in it")
	}
	w.WantFree(a.Key)
}
