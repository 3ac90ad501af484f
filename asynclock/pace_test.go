// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// A distant store takes its time for each call that renews, and notes how many
// leases each of them is for.
type distant struct {
	forgetful

	takes time.Duration

	mu    sync.Mutex
	sizes []int
}

func (d *distant) Join(string, func(asynclock.Event)) (asynclock.Session, error) { return d, nil }

func (d *distant) Renew(ctx context.Context, batch []asynclock.RenewRequest) []asynclock.RenewReply {
	d.mu.Lock()
	d.sizes = append(d.sizes, len(batch))
	d.mu.Unlock()
	select {
	case <-time.After(d.takes):
	case <-ctx.Done(): // the client closes
	}
	return d.forgetful.Renew(ctx, batch)
}

// A round of renewals of many leases leaves room for locks between its calls,
// but not at the price of leases.
func TestRenewalsAreGentleUnlessTheyAreLate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		takes   time.Duration
		largest int // call in a round
	}{
		"near":    {time.Millisecond, 64},
		"distant": {900 * time.Millisecond, 256},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &distant{forgetful: forgetful(asynclock.Granted), takes: tt.takes}
				c, err := asynclock.New(d)
				if err != nil {
					t.Fatal(err)
				}
				defer abandon(c)
				leases := make([]*asynclock.Lease, 2000)
				for i := range leases {
					leases[i] = lock(t, c, fmt.Sprint("key ", i))
				}
				time.Sleep(asynclock.DefaultTTL)
				for _, l := range leases {
					if err := l.Err(); err != nil {
						t.Fatalf("got %v, want every lease to last", err)
					}
				}
				d.mu.Lock()
				defer d.mu.Unlock()
				renewed, largest := 0, 0
				for _, n := range d.sizes {
					renewed += n
					largest = max(largest, n)
				}
				if largest != tt.largest || renewed < len(leases) {
					t.Errorf("got %d renewals, up to %d in a call; want all %d, and up to %d", renewed, largest, len(leases), tt.largest)
				}
			})
		})
	}
}
