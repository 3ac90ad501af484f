// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"slices"
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

// A client learns that messages don't come through, and that they do again.
func TestTheClientKnowsWhetherMessagesComeThrough(t *testing.T) {
	t.Parallel()
	var told []store.EventKind
	s := &session{store: onMiniredis(t).store(t), events: func(e store.Event) { told = append(told, e.Kind) }}
	s.down(store.ErrUnreachable)
	s.up()
	if want := []store.EventKind{store.EventResync, store.EventDisconnected, store.EventResync}; !slices.Equal(told, want) {
		t.Errorf("got events %v, want %v", told, want)
	}
}
