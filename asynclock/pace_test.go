// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A distant store takes its time for each call that renews, and notes how many
// leases each of them is for.
type distant struct {
	takes time.Duration

	mu       sync.Mutex
	sizes    []int
	times    map[time.Time]bool // at which calls begin
	underWay int
	atOnce   int // calls, at most
}

func (d *distant) renew(ctx context.Context, batch []store.RenewRequest) error {
	d.mu.Lock()
	d.sizes = append(d.sizes, len(batch))
	d.underWay++
	d.atOnce = max(d.atOnce, d.underWay)
	if d.times != nil {
		d.times[time.Now()] = true
	}
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.underWay--
		d.mu.Unlock()
	}()
	select {
	case <-time.After(d.takes):
		return nil
	case <-ctx.Done(): // the client closes, or has too many calls under way
		return ctx.Err()
	}
}

// holdKeys has a client of the store hold n keys, "key 0" and on, until the test ends.
func holdKeys(t *testing.T, st store.Store, n int, options ...asynclock.ClientOption) []*asynclock.Lease {
	t.Helper()
	c, err := asynclock.New(st, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { abandon(c) })
	leases := make([]*asynclock.Lease, n)
	for i := range leases {
		leases[i] = lock(t, c, fmt.Sprint("key ", i))
	}
	return leases
}

// wantAll fails the test unless each of the leases lasts.
func wantAll(t *testing.T, leases []*asynclock.Lease) {
	t.Helper()
	for _, l := range leases {
		if err := l.Err(); err != nil {
			t.Fatalf("got %v, want every lease to last", err)
		}
	}
}

// A round of renewals of many leases leaves room for locks between its calls, in
// commands that are not too many either, and not at the price of leases.
func TestRenewalsAreGentleUnlessTheyAreLate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		takes    time.Duration
		smallest int // call in a round
		largest  int
	}{
		"near":    {time.Millisecond, 50, 99},
		"distant": {900 * time.Millisecond, 1, 512},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &distant{takes: tt.takes}
				leases := holdKeys(t, altered{Store: memstore.New(), renew: d.renew}, 2000)
				time.Sleep(asynclock.DefaultTTL)
				wantAll(t, leases)
				d.mu.Lock()
				defer d.mu.Unlock()
				renewed := 0
				for _, n := range d.sizes {
					renewed += n
				}
				if smallest, largest := slices.Min(d.sizes), slices.Max(d.sizes); renewed < len(leases) || smallest < tt.smallest || largest > tt.largest || largest < tt.largest/2 {
					t.Errorf("got %d renewals, %d to %d in a call; want all %d, and %d to %d", renewed, smallest, largest, len(leases), tt.smallest, tt.largest)
				}
				if d.atOnce > 1 {
					t.Errorf("got %d calls at once, want one after the other", d.atOnce)
				}
			})
		})
	}
}

func TestLanesAreNotRenewedAllAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &distant{times: make(map[time.Time]bool)}
		numbered := func(key string) (number int) {
			_, _ = fmt.Sscanf(key, "key %d", &number)
			return number
		}
		const lanes, rounds = 10, 3
		holdKeys(t, altered{Store: memstore.New(), renew: d.renew, lane: numbered}, lanes)
		time.Sleep(rounds * asynclock.DefaultTTL / 3)
		d.mu.Lock()
		defer d.mu.Unlock()
		if calls := len(d.sizes); len(d.times) != calls || calls < lanes*rounds {
			t.Errorf("%d lanes taken at once, %d rounds: got %d renewals at %d moments, want each at its own", lanes, rounds, calls, len(d.times))
		}
	})
}
