// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// A stuckHandler is a log handler that returns from nothing before the test ends.
type stuckHandler struct {
	slog.Handler

	free chan struct{}
}

func (h stuckHandler) Enabled(context.Context, slog.Level) bool {
	<-h.free
	return false
}

// That messages come through is logged by who has to tell the client so.
func TestALogHandlerThatBlocksHoldsUpNoMessages(t *testing.T) {
	t.Parallel()
	h := stuckHandler{free: make(chan struct{})}
	t.Cleanup(func() { close(h.free) })
	events := make(chan asynclock.Event, 16)
	st := onMiniredis(t).store(t, WithLockType(PubSubLock), WithLogger(slog.New(h)))
	s, err := st.Join("client-0", func(e asynclock.Event) { events <- e })
	if err != nil {
		t.Fatal(err)
	}
	select {
	case e := <-events:
		if e.Kind != asynclock.EventGap {
			t.Errorf("got event %d, want %d: messages come through", e.Kind, asynclock.EventGap)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("got no event in 20s, want one that messages come through")
	}
	if err := s.Leave(t.Context()); err != nil {
		t.Errorf("Leave: got %v, want no error", err)
	}
}
