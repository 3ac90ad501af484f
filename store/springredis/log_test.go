// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// That messages come through is logged by who has to tell the client so.
func TestALogHandlerThatBlocksHoldsUpNoMessages(t *testing.T) {
	t.Parallel()
	h := kit.NewStuck(t)
	events := make(chan asynclock.Event, 16)
	st := onMiniredis(t).store(t, WithLockType(PubSubLock), WithLogger(h.Logger()))
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
	h.WantAsked(t)
	if err := s.Leave(t.Context()); err != nil {
		t.Errorf("Leave: got %v, want no error", err)
	}
}
