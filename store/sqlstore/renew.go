// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// errRowLocked: somebody has a transaction open on the lock's row.
var errRowLocked = fmt.Errorf("%w: the row is locked by another transaction", asynclock.ErrUnreachable)

// How often a renewal is tried whose row is locked, and the pause after the first try;
// it doubles. A request for the same key is over by then.
const (
	lockedTries = 5
	lockedPause = 5 * time.Millisecond
)

// Renew is one call for the whole batch, which waits for no row that another
// transaction has locked. Those whose rows are come again in a call of their own.
func (s *session) Renew(ctx context.Context, batch []asynclock.RenewRequest) []asynclock.RenewReply {
	replies := s.renew(ctx, batch)
	for try := range lockedTries - 1 {
		var locked []int
		var again []asynclock.RenewRequest
		for i, r := range replies {
			if errors.Is(r.Err, errRowLocked) {
				locked, again = append(locked, i), append(again, batch[i])
			}
		}
		if len(again) == 0 || pause(ctx, lockedPause<<try) != nil {
			break
		}
		for i, r := range s.renew(ctx, again) {
			replies[locked[i]] = r
		}
	}
	return replies
}

func (s *session) renew(ctx context.Context, batch []asynclock.RenewRequest) []asynclock.RenewReply {
	return perform(ctx, s, "RENEW", batch, s.putRenew, s.readRenew,
		func(err error) asynclock.RenewReply { return asynclock.RenewReply{Err: err} },
	)
}

func (s *session) putRenew(q *asynclock.RenewRequest) (item, error) {
	it, err := s.store.newOwnerItem(q.Key, q.Owner)
	if err == nil {
		err = checkToken(q.Token)
	}
	if err == nil && q.TTL <= 0 {
		err = errTTL
	}
	it.TTL, it.Token, it.Watch = micros(q.TTL), q.Token, q.WatchContention
	return it, err
}

func (s *session) readRenew(_ *asynclock.RenewRequest, a answer) (reply asynclock.RenewReply, err error) {
	switch a.Status {
	case statusGranted:
		reply.Waiters = s.store.waiters(a)
	case statusExpired:
		err = asynclock.ErrExpired
	case statusStolen:
		err = asynclock.ErrStolen
	case statusLocked:
		err = errRowLocked
	default:
		err = errReply
	}
	return reply, err
}
