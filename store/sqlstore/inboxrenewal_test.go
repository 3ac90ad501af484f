// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"testing"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

// TestHolderThatWasDeafAtItsGrantIsTold: once notifications come through and it has renewed, as
// of a first waiter and of a Force. A renewal that knows of no inbox leaves that in place.
func TestHolderThatWasDeafAtItsGrantIsTold(t *testing.T) {
	t.Parallel()
	st := newTables(t, sqltest.OnPostgres(t))
	a, b := join(t, st), join(t, st)
	const deaf = ""
	if got := a.session.acquire(t.Context(), []store.AcquireRequest{sqltest.Request("key", "a")}, deaf)[0]; got.Status != store.Granted {
		t.Fatalf("Acquire of a free key: got %+v, want Granted", got)
	}
	q := store.RenewRequest{Key: "key", Owner: "a", TTL: sqltest.Long, NotifyQueued: true}
	if err := a.session.Renew(t.Context(), []store.RenewRequest{q})[0].Err; err != nil {
		t.Fatal(err)
	}
	inbox := a.session.inbox
	a.session.inbox = nil // as while its connection is being made anew
	if err := a.session.Renew(t.Context(), []store.RenewRequest{q})[0].Err; err != nil {
		t.Fatal(err)
	}
	a.session.inbox = inbox
	b.Acquire(sqltest.Request("key", "b"))
	a.AwaitKind(store.EventQueued)
	if _, err := b.Session.Force(t.Context(), "key", 0); err != nil {
		t.Fatal(err)
	}
	a.AwaitKind(store.EventForced)
}
