// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// FuzzEvent delivers an event with any content, for any owner or for one of
// ours: it does no harm to a lease that it does not name, and a lease that comes
// of it ends.
func FuzzEvent(f *testing.F) {
	for kind := range 8 {
		f.Add(kind, "", false, int64(1), int64(1), int64(1), 1)
		f.Add(kind, "ours", true, int64(1<<40), int64(0), int64(time.Second), 1)
		f.Add(kind, "AAAAAAAAAAAAAAAAAAAAAA.3f", false, int64(-1), int64(-1), int64(-1), -1)
		f.Add(kind, "AAAAAAAAAAAAAAAAAAAAAA.ff", false, int64(0), int64(1<<62), int64(1<<62), 1<<40)
	}
	f.Fuzz(func(t *testing.T, kind int, owner string, ours bool, first, spare, grantTTL int64, waiters int) {
		synctest.Test(t, func(t *testing.T) {
			memory := memstore.New()
			w := &world{T: t, store: asynclocktest.Wrap(memory), memory: memory}
			holder, c := w.client(), w.client()
			lock(w, holder, "theirs")
			mine := lock(w, c, "mine")
			future := c.LockChan(w.Context(), "theirs")
			w.wait()
			if ours {
				owner = w.store.Calls(asynclocktest.Acquire.From(1).Where(asynclocktest.Acquire.On("theirs")))[0].Owner
			}
			w.store.Tell(1, store.Event{
				Kind: store.EventKind(kind), Owner: owner, GrantTTL: time.Duration(grantTTL), Waiters: waiters,
				Grant: store.Grant{Token: first, Reserved: spare, TokensFollowClock: true},
			})
			w.wait()
			wantValid(w, mine)
			if len(future) == 0 {
				return
			}
			if !ours || store.EventKind(kind) != store.EventGrant {
				w.Fatalf("event %d for owner %q was a grant", kind, owner)
			}
			if l, err := (<-future).Lease(); err == nil && time.Until(l.Deadline()) > time.Duration(grantTTL) {
				w.Errorf("a grant for %v is trusted for %v", time.Duration(grantTTL), time.Until(l.Deadline()))
			}
		})
	})
}
