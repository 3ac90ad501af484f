// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
)

// Renew extends each part to ttl from now, with or without the watchdog: see [Lease.Renew]. All renewals go in
// one call to the store, or in one for each of the store's lanes.
//
// If the lease has ended, or turns out to be lost, the error is the lease's. Otherwise it joins those of the
// parts that were not renewed. Each is an [*Error] with its key. Those parts last as long as before, and the
// others are renewed.
func (m *MultiLease) Renew(ctx context.Context, ttl time.Duration) error {
	if m.isNone() {
		return &Error{Op: "renew all", Err: errNoLease}
	}
	if ctx == nil {
		return &Error{Op: "renew all", Err: errNilContext}
	}
	if err := checkTTL(ttl); err != nil {
		return &Error{Op: "renew all", Err: err}
	}
	if err := m.Err(); err != nil {
		return &Error{Op: "renew all", Err: err}
	}
	errs := m.renewParts(ctx, ttl)
	if err := m.Err(); err != nil {
		return &Error{Op: "renew all", Err: err}
	}
	return errors.Join(errs...)
}

// renewParts sends a renewal of each part, and returns an error or nil for each.
func (m *MultiLease) renewParts(ctx context.Context, ttl time.Duration) []error {
	type together struct {
		calls  []*machine.Renewal
		places []int
	}
	client := m.parts[0].state.shard.client
	errs := make([]error, len(m.parts))
	lanes := make(map[int]*together, 1)
	for i, l := range m.parts {
		call, err := l.renewal(ttl)
		if err != nil {
			errs[i] = &Error{"renew all", m.keys[i], err} // the whole has just ended
			continue
		}
		lane := client.session.Lane(m.keys[i])
		if lanes[lane] == nil {
			lanes[lane] = new(together)
		}
		lanes[lane].calls, lanes[lane].places = append(lanes[lane].calls, call), append(lanes[lane].places, i)
	}
	var flying sync.WaitGroup
	for _, t := range lanes {
		flying.Go(func() { // ends with the call; the caller waits for it
			for n, err := range client.renewNow(ctx, t.calls) {
				if i := t.places[n]; err != nil {
					errs[i] = &Error{"renew all", m.keys[i], err}
				}
			}
		})
	}
	flying.Wait()
	return errs
}
