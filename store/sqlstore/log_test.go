// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"slices"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
)

func TestWithoutALoggerWarningsGoToTheDefault(t *testing.T) {
	kit.LogOptions(t, WithLogger, WithoutLogger, func(_ *testing.T, options []Option) error {
		s, err := newSettings(options)
		kit.Warn(s.log())
		return err
	})
}

// A client learns that notifications don't come through, and that they do again.
func TestTheClientKnowsWhetherNotificationsComeThrough(t *testing.T) {
	t.Parallel()
	var told []store.EventKind
	s := &session{store: new(Store), events: func(e store.Event) { told = append(told, e.Kind) }}
	s.down(store.ErrUnreachable)
	s.up()
	if want := []store.EventKind{store.EventResync, store.EventDisconnected, store.EventResync}; !slices.Equal(told, want) {
		t.Errorf("got events %v, want %v", told, want)
	}
}
