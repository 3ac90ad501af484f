// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
)

// Two keys that are one lock in the store are one key in the client, whichever was used first.
func TestTwoSpellingsAreOneKey(t *testing.T) {
	story(t, func(w *world) {
		c := w.clientOf(altered{Store: w.store, spelled: strings.ToLower, listed: func(info store.Info) (store.Info, error) {
			info.Key = strings.ToUpper(info.Key) // as another program has written it
			return info, nil
		}})
		all, err := c.LockAll(w.Context(), []string{"KEY", "key", "Other", "OTHER"})
		if err != nil {
			w.Fatal(err)
		}
		if got := all.Keys(); !slices.Equal(got, []string{"key", "other"}) || all.Token("KEY") == 0 || all.Token("KEY") != all.Token("key") {
			w.Errorf("LockAll: got keys %q with tokens %v, want each once", got, all.Tokens())
		}
		_, err = c.TryLock(w.Context(), "kEY")
		wantError(w, err, asynclock.ErrHeld)
		_, err = (<-c.LockChan(w.Context(), "kEY", asynclock.WithWait(0))).Lease()
		wantError(w, err, asynclock.ErrHeld)
		_, err = (<-c.LockChan(all.Context(), "KEY")).Lease()
		wantError(w, err, asynclock.ErrReentry)
		_, err = c.LockAll(all.Context(), []string{"Key"})
		wantError(w, err, asynclock.ErrReentry)
		for name, find := range map[string]func(context.Context, string) (*asynclock.Lease, bool){"LeaseFrom": asynclock.LeaseFrom, "Client.LeaseFrom": c.LeaseFrom} {
			if l, ok := find(all.Context(), "KEY"); !ok || l.Key() != "key" {
				w.Errorf("%s by another spelling: got %v, want the lease", name, ok)
			}
		}
		inner, err := c.Lock(all.Context(), "KEY", asynclock.WithReentry(true))
		if err != nil || inner.Token() != all.Token("key") {
			w.Errorf("Lock of another spelling with re-entry: got %v, want it to join", err)
		}
		if info, err := c.Inspect(w.Context(), "KEY"); err != nil || !info.Mine || info.Key != "key" {
			w.Errorf("Inspect of another spelling: got %+v, %v; want it Mine", info, err)
		}
		for info, err := range c.List(w.Context(), "") {
			if err != nil || !info.Mine {
				w.Errorf("List: got %+v, %v; want it Mine", info, err)
			}
		}
		if held, err := c.ForceUnlock(w.Context(), "KEY", 0); !held || err != nil {
			w.Errorf("ForceUnlock of another spelling: got %v, %v; want true", held, err)
		}
	})
}
