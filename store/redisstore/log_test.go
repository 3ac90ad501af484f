// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/redistest"
)

// A stuckHandler is a log handler that returns from nothing before the test ends.
type stuckHandler struct {
	slog.Handler

	entered chan struct{} // has room for one
	free    chan struct{}
}

func (h *stuckHandler) Enabled(context.Context, slog.Level) bool {
	select {
	case h.entered <- struct{}{}:
	default:
	}
	<-h.free
	return false
}

// stuckLog is the option of a store whose log handler blocks.
func stuckLog(t *testing.T) (Option, *stuckHandler) {
	t.Helper()
	h := &stuckHandler{entered: make(chan struct{}, 1), free: make(chan struct{})}
	t.Cleanup(func() { close(h.free) })
	return WithLogger(slog.New(h)), h
}

// returns waits until f does.
func returns(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { // ends when f does, at the latest when the handler is freed
		f()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s has not returned after 20s, want it held up by no log handler", what)
	}
}

// Each place that logs is one that leases depend on: messages, what acquires, what
// renews. All of them do their work while the handler blocks.
func TestALogHandlerThatBlocksHoldsUpNothing(t *testing.T) {
	t.Parallel()
	sv := onServer(t, redistest.Option(t, "ASYNCLOCK_REDIS_URL"))
	option, handler := stuckLog(t)
	st := sv.store(t, option)
	s, err := st.Join("client-0", func(asynclock.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	q := redistest.Request("key", "a")
	var token int64
	returns(t, "the first Acquire", func() { token = s.Acquire(t.Context(), []asynclock.AcquireRequest{q})[0].First })
	if token == 0 {
		t.Fatal("Acquire: got no token, want the key")
	}
	sv.promote(t)
	sv.Do(t, "DEL", sv.redisKey("key", 'l'))
	returns(t, "a Renew that writes a holding anew", func() {
		if got := s.Renew(t.Context(), []asynclock.RenewRequest{{Key: "key", Owner: "a", TTL: long, Token: token, Holder: "a"}})[0]; got.Err != nil {
			t.Errorf("Renew: got %v, want no error", got.Err)
		}
	})
	returns(t, "an Acquire in the grace", func() {
		if got := s.Acquire(t.Context(), []asynclock.AcquireRequest{redistest.Attempt("another", "b")})[0]; !errors.Is(got.Err, asynclock.ErrUnreachable) {
			t.Errorf("Acquire in the grace: got %+v, want ErrUnreachable", got)
		}
	})
	returns(t, "Leave", func() { _ = s.Leave(t.Context()) })
	returns(t, "Close", st.Close)
	select {
	case <-handler.entered:
	default:
		t.Error("nobody has asked the handler, want it to block")
	}
}

// The same where the history is hidden, which is logged by the request that finds it.
func TestALogHandlerThatBlocksHoldsUpNoUnguardedAcquire(t *testing.T) {
	t.Parallel()
	sv := onMiniredis(t) // it has none to show
	option, _ := stuckLog(t)
	s, err := sv.newStore(t, option).Join("client-0", func(asynclock.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	returns(t, "Acquire", func() {
		if got := s.Acquire(t.Context(), []asynclock.AcquireRequest{redistest.Request("key", "a")})[0]; got.Status != asynclock.Granted {
			t.Errorf("Acquire: got %+v, want the key", got)
		}
	})
	returns(t, "Leave", func() { _ = s.Leave(t.Context()) })
}
