// SPDX-License-Identifier: Apache-2.0

package adapterkit

import (
	"errors"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

// Results are the errors of calls, by their names, and what they should match.
type Results map[string]struct{ Got, Want error }

// WantResults checks the errors of calls.
func WantResults(t testing.TB, results Results) {
	t.Helper()
	for name, r := range results {
		if !errors.Is(r.Got, r.Want) {
			t.Errorf("%s: got %v, want %v", name, r.Got, r.Want)
		}
	}
}

// WantRefusals checks that a maker of the adapter refuses at once what no lock could be made with, and asks no store.
func WantRefusals(t testing.TB, make func(locks *asynclock.Client, options ...asynclock.LockOption) error) {
	t.Helper()
	store := asynclocktest.New()
	locks := NewClient(t, store)
	WantResults(t, Results{
		"all is well": {make(locks, asynclock.WithTTL(time.Minute)), nil},
		"no client":   {make(nil), asynclock.ErrInvalidOption},
		"nil option":  {make(locks, nil), asynclock.ErrInvalidOption},
		"bad option":  {make(locks, asynclock.WithTTL(-1)), asynclock.ErrInvalidOption},
	})
	if calls := store.Calls(asynclocktest.Any); len(calls) > 0 {
		t.Errorf("got requests %v, want none", calls)
	}
}
