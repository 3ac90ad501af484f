// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
)

// That messages come through is logged by who has to tell the client so.
func TestALogHandlerThatBlocksHoldsUpNoMessages(t *testing.T) {
	t.Parallel()
	h := kit.NewStuck(t)
	events := make(chan store.Event, 16)
	st := onMiniredis(t).store(t, WithLockType(PubSubLock), WithLogger(h.Logger()))
	s, err := st.Open("client-0", func(e store.Event) { events <- e })
	if err != nil {
		t.Fatal(err)
	}
	select {
	case e := <-events:
		if e.Kind != store.EventResync {
			t.Errorf("got event %d, want %d: messages come through", e.Kind, store.EventResync)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("got no event in 20s, want one that messages come through")
	}
	h.WantAsked(t)
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("Close: got %v, want no error", err)
	}
}

func TestWithoutALoggerWarningsGoToTheDefault(t *testing.T) {
	kit.LogOptions(t, WithLogger, WithoutLogger, func(_ *testing.T, options []Option) error {
		s, err := newSettings(options)
		kit.Warn(s.log.Open())
		return err
	})
}
