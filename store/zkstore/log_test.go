// SPDX-License-Identifier: Apache-2.0

package zkstore

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

// That a session has ended is logged before its holders are told.
func TestALogHandlerThatBlocksHoldsUpNoLoss(t *testing.T) {
	t.Parallel()
	h := stuckHandler{free: make(chan struct{})}
	t.Cleanup(func() { close(h.free) })
	st := open(t, newRoot(), WithLogger(slog.New(h)))
	events := make(chan asynclock.Event, 16)
	s := join(t, st, func(e asynclock.Event) { events <- e })
	acquire(t, s, waits("owner"))
	go st.onSession(true) // ends with the test at the latest, when the handler is free
	select {
	case e := <-events:
		if e.Kind != asynclock.EventLost || e.Owner != "owner" {
			t.Errorf("got %+v, want that the owner has lost its holding", e)
		}
	case <-time.After(20 * time.Second):
		t.Error("got no event in 20s, want one that the holding is lost")
	}
}
