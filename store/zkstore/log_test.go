// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// That a session has ended is logged before its holders are told.
func TestALogHandlerThatBlocksHoldsUpNoLoss(t *testing.T) {
	t.Parallel()
	h := kit.NewStuck(t)
	st := open(t, newRoot(), WithLogger(h.Logger()))
	events := make(chan asynclock.Event, 16)
	s := join(t, st, func(e asynclock.Event) {
		if e.Kind != asynclock.EventGap { // a slow connection says so when it is there at last
			events <- e
		}
	})
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
	h.WantAsked(t)
}
