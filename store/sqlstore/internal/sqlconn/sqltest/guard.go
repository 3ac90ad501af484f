// SPDX-License-Identifier: Apache-2.0

package sqltest

import (
	"errors"
	"testing"

	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/store"
)

// guardRefusesStaleTokens is a test: those below the largest that has guarded a
// transaction.
func (s Suite) guardRefusesStaleTokens(t *testing.T) {
	s.on(t, func(t *testing.T, b Tables) {
		for _, step := range []struct {
			key   string
			token int64
			fresh bool
		}{
			{"key", 5, true},
			{"key", 5, true},
			{"key", 7, true},
			{"key", 6, false},
			{"key", 5, false},
			{"key", 7, true},
			{"other\x00%key", 1, true},
		} {
			tx := b.Begin(t)
			err := b.Store.Guard(t.Context(), tx, step.key, step.token)
			var stale *fence.StaleError
			switch {
			case step.fresh && err != nil:
				t.Errorf("Guard with %d: got %v, want no error", step.token, err)
			case !step.fresh && (!errors.Is(err, fence.ErrStale) || !errors.As(err, &stale) || stale.Newest != 7):
				t.Errorf("Guard with %d: got %v, want ErrStale after 7", step.token, err)
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
		}
		for _, bad := range []struct {
			key   string
			token int64
			want  error
		}{{"", 1, store.ErrInvalidKey}, {"key", 0, store.ErrInvalidOption}} {
			if err := b.Store.Guard(t.Context(), b.Begin(t), bad.key, bad.token); !errors.Is(err, bad.want) {
				t.Errorf("Guard(%q, %d): got %v, want %v", bad.key, bad.token, err, bad.want)
			}
		}
	})
}
