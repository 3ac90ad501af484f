// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
)

// That a session has ended is logged before its holders are told.
func TestALogHandlerThatBlocksHoldsUpNoLoss(t *testing.T) {
	t.Parallel()
	h := kit.NewStuck(t)
	st := open(t, newRoot(), WithLogger(h.Logger()))
	events := make(chan store.Event, 16)
	s := join(t, st, func(e store.Event) {
		if e.Kind != store.EventResync { // a slow connection says so when it is there at last
			events <- e
		}
	})
	acquire(t, s, waits("owner"))
	go st.onSession(true) // ends with the test at the latest, when the handler is free
	select {
	case e := <-events:
		if e.Kind != store.EventLost || e.Owner != "owner" {
			t.Errorf("got %+v, want that the owner has lost its holding", e)
		}
	case <-time.After(20 * time.Second):
		t.Error("got no event in 20s, want one that the holding is lost")
	}
	h.WantAsked(t)
}

func TestWithoutALoggerWarningsGoToTheDefault(t *testing.T) {
	kit.LogOptions(t, WithLogger, WithoutLogger, func(_ *testing.T, options []Option) error {
		s, err := newSettings(options)
		kit.Warn(s.log.Open())
		return err
	})
}
