// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"testing"

	"github.com/asynclock/asynclock-go/asynclock"
)

// TestHolderThatWasDeafAtItsGrantIsTold: once messages come through and it has renewed, as
// of a first waiter and of a Force. A renewal that knows of no inbox leaves that in place.
func TestHolderThatWasDeafAtItsGrantIsTold(t *testing.T) {
	t.Parallel()
	st := newTables(t, onPostgres(t))
	a, b := join(t, st), join(t, st)
	const deaf = ""
	if got := a.session.acquire(t.Context(), []asynclock.AcquireRequest{request("key", "a")}, deaf)[0]; got.Status != asynclock.Granted {
		t.Fatalf("Acquire of a free key: got %+v, want Granted", got)
	}
	q := asynclock.RenewRequest{Key: "key", Owner: "a", TTL: long, WatchContention: true}
	if err := a.session.Renew(t.Context(), []asynclock.RenewRequest{q})[0].Err; err != nil {
		t.Fatal(err)
	}
	inbox := a.session.inbox
	a.session.inbox = nil // as while its connection is being made anew
	if err := a.session.Renew(t.Context(), []asynclock.RenewRequest{q})[0].Err; err != nil {
		t.Fatal(err)
	}
	a.session.inbox = inbox
	b.acquire(request("key", "b"))
	a.awaitKind(asynclock.EventContended)
	if _, err := b.session.Force(t.Context(), "key"); err != nil {
		t.Fatal(err)
	}
	a.awaitKind(asynclock.EventForced)
}
