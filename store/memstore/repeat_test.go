// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// A repetition may be a late copy of a request that was answered long ago.
func TestARepeatedAcquireNeverShortens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := join(t, New(), nil)
		first := acquire(t, c, "key", "owner")
		again := store.AcquireRequest{Key: "key", Owner: "owner", TTL: ttl / 2}
		remaining := func(want time.Duration) {
			t.Helper()
			info, err := c.Inspect(t.Context(), "key")
			if err != nil || info.Remaining != want {
				t.Errorf("remaining: got %v, %v, want %v", info.Remaining, err, want)
			}
		}
		if got := c.Acquire(t.Context(), []store.AcquireRequest{again})[0]; got.Grant != first.Grant {
			t.Errorf("repeated: got %+v, want the grant %+v", got, first.Grant)
		}
		remaining(ttl)
		time.Sleep(ttl * 3 / 4)
		c.Acquire(t.Context(), []store.AcquireRequest{again})
		remaining(ttl / 2)
	})
}

func TestAPlainWithdrawalIsNotRemembered(t *testing.T) {
	t.Parallel()
	c := join(t, New(), nil)
	release(t, c, store.ReleaseRequest{Key: "key", Owner: "owner"})
	if got := acquire(t, c, "key", "owner"); got.Status != store.Granted {
		t.Errorf("got status %v, want Granted", got.Status)
	}
}

func TestInspectDescribesTheFirstFew(t *testing.T) {
	t.Parallel()
	c := join(t, New(), nil)
	acquire(t, c, "key", "holder")
	for i := range 2 * shown {
		acquire(t, c, "key", fmt.Sprint("waiter ", i))
	}
	info, err := c.Inspect(t.Context(), "key")
	if err != nil || info.Waiters != 2*shown || len(info.Queue) != shown {
		t.Errorf("got %d waiters, %d of them described, error %v; want %d and %d", info.Waiters, len(info.Queue), err, 2*shown, shown)
	}
}
