// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"testing"
	"testing/synctest"

	"github.com/asynclock/asynclock-go/store/memstore"
)

// A part of a future is given to the next waiter of the same client, under the same owner id, before the
// others are given back. That must not release the next waiter's key.
func TestAPartThatWasGivenBackIsNotReleasedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		ours, err := New(shared)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := New(shared)
		if err != nil {
			t.Fatal(err)
		}
		result := <-ours.LockAllChan(t.Context(), []string{"a", "b"})
		next := ours.LockChan(t.Context(), "b")
		part := result.future.offered[1]
		part.leave(ErrNotClaimed) // as when the context ends in the middle of a claim
		if _, err := result.Lease(); err == nil {
			t.Error("a lease whose part has ended: got no error, want one")
		}
		lease, err := (<-next).Lease()
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := lease.Renew(t.Context(), DefaultTTL); err != nil {
			t.Errorf("Renew: got %v, want no error: the store has the key for the lease", err)
		}
		if _, err := theirs.TryLock(t.Context(), "b"); err == nil {
			t.Error("TryLock of a key that is held: got no error")
		}
		if err := lease.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		for _, c := range []*Client{ours, theirs} {
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}
