// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"
)

// limit is how long what takes no time may take on a busy machine.
const limit = 20 * time.Second

// A Stuck is a log handler that returns from nothing before it is freed.
type Stuck struct {
	slog.Handler

	asked chan struct{} // has room for one
	freed chan struct{}
	free  sync.Once
}

// NewStuck makes a handler, which is freed when the test ends, if not before.
func NewStuck(t testing.TB) *Stuck {
	h := &Stuck{asked: make(chan struct{}, 1), freed: make(chan struct{})}
	t.Cleanup(h.Free)
	return h
}

// Logger logs to the handler.
func (h *Stuck) Logger() *slog.Logger { return slog.New(h) }

// Enabled blocks, and wants nothing in the end.
func (h *Stuck) Enabled(context.Context, slog.Level) bool {
	select {
	case h.asked <- struct{}{}:
	default:
	}
	<-h.freed
	return false
}

// Free lets the handler return, from now on at once.
func (h *Stuck) Free() { h.free.Do(func() { close(h.freed) }) }

// WantAsked fails the test unless something was logged, soon at the latest: that it
// held up nothing would mean nothing.
func (h *Stuck) WantAsked(t testing.TB) {
	t.Helper()
	select {
	case <-h.asked:
	case <-time.After(limit):
		t.Errorf("nobody has asked the handler in %v, want it to block", limit)
	}
}

// Returns waits until f does, which the handler must not hold up.
func Returns(t testing.TB, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { // ends when f does, at the latest when the handler is freed
		f()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatalf("%s has not returned after %v, want it held up by no log handler", what, limit)
	}
}
