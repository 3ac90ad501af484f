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

// rowPatience is how long a batch of renewals waits for rows that are locked, all of them
// together; but never for more than half of what is left of its time.
const rowPatience = time.Second

// Renew is one call for the whole batch, which waits for no row that another
// transaction has locked. Those whose rows are come again, each by itself, and wait:
// whoever has the row locked or came before goes first, and nobody else. Requests for the
// same key without a pause could keep out for ever who only looks whether it is free.
func (s *session) Renew(ctx context.Context, batch []asynclock.RenewRequest) []asynclock.RenewReply {
	replies := s.renew(ctx, batch)
	var locked []int
	for i, r := range replies {
		if errors.Is(r.Err, errRowLocked) {
			locked = append(locked, i)
		}
	}
	patience := rowPatience
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline)/2)
	}
	until := time.Now().Add(patience)
	for n, i := range locked {
		share := time.Until(until) / time.Duration(len(locked)-n)
		if share <= 0 {
			break
		}
		inTime, cancel := context.WithTimeout(ctx, share)
		r := s.renew(inTime, batch[i:i+1])[0]
		cancel()
		if errors.Is(r.Err, context.DeadlineExceeded) && ctx.Err() == nil { // ours, of which the caller knows nothing
			r.Err = fmt.Errorf("%w: %w", asynclock.ErrOutcomeUnknown, errRowLocked)
		}
		replies[i] = r
	}
	return replies
}

// renew is one call, which waits for the row of a request that is alone.
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
