// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/notes"
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

// Clocks are compared by who reads the answer to a renewal.
func TestALogHandlerThatBlocksHoldsUpNoAnswer(t *testing.T) {
	h := stuckHandler{free: make(chan struct{})}
	w := skewWatch{bound: time.Second, log: notes.New(slog.New(h))}
	now := time.Now()
	observed := make(chan struct{})
	go func() { // ends with the test, when the handler is free
		w.observe(now.Add(-time.Hour), now, now)
		close(observed)
	}()
	select {
	case <-observed:
	case <-time.After(20 * time.Second):
		t.Error("observe has not returned after 20s, want it held up by no log handler")
	}
	close(h.free)
	w.log.Close()
}
