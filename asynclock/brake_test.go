// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/asynclock/asynclock-go/asynclock"
)

// A brake holds up a client's watchdog as the system holds up a process: what
// is due is not done in time. Records are logged by the goroutine that has
// them, so a handler that blocks in the watchdog's stands for one that is not
// run. Events still arrive, and callers can still ask.
type brake struct {
	slog.Handler

	pulled  atomic.Pointer[func()] // what the next record's goroutine does
	stopped chan struct{}
}

func newBrake() *brake {
	return &brake{Handler: slog.DiscardHandler, stopped: make(chan struct{})}
}

// option makes a client one that the brake can hold up.
func (b *brake) option() asynclock.ClientOption { return asynclock.WithLogger(slog.New(b)) }

// Enabled implements [slog.Handler].
func (b *brake) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements [slog.Handler].
func (b *brake) Handle(context.Context, slog.Record) error {
	if stand := b.pulled.Swap(nil); stand != nil {
		(*stand)()
	}
	return nil
}

// pull makes the watchdog stand still until the returned function is called. It
// takes a tenth of a second, until a lease that the watchdog has to end is over.
func (b *brake) pull(w *world, c *asynclock.Client) (goOn func()) {
	w.Helper()
	moving := make(chan struct{})
	goOn = sync.OnceFunc(func() { close(moving) })
	w.Cleanup(goOn)
	stand := func() {
		b.stopped <- struct{}{}
		<-moving
	}
	lock(w, c, "brake", asynclock.WithTTL(asynclock.MinTTL), asynclock.WithoutRenewal())
	b.pulled.Store(&stand)
	<-b.stopped
	return goOn
}
