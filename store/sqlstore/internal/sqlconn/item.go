// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"cmp"
	"fmt"

	"github.com/asynclock/asynclock-go/store"
)

// AcquireItem returns the item for a request.
func (s *Session) AcquireItem(q *store.AcquireRequest) (Item, error) {
	it, err := s.ownerItem(q.Key, q.Owner)
	switch {
	case err != nil:
		return it, err
	case q.TTL <= 0:
		return it, errTTL
	case q.GrantTTL < 0, q.WaiterTTL < 0, q.Ticket < 0:
		return it, fmt.Errorf("%w: a negative grant TTL, liveness or ticket", store.ErrInvalidOption)
	case q.Wait && (q.GrantTTL == 0 || q.WaiterTTL == 0): // it would be dropped from the queue at once
		return it, fmt.Errorf("%w: a waiter needs a grant TTL and a liveness", store.ErrInvalidOption)
	}
	if err := s.conn.Features.Check(q.Share, q.Extra); err != nil {
		return it, err
	}
	it.TTL, it.Grant, it.Alive = Micros(q.TTL), Micros(q.GrantTTL), Micros(q.WaiterTTL)
	it.Wait, it.Limit, it.Ticket = q.Wait, max(q.QueueLimit, 0), q.Ticket
	it.Watch, it.Holder, it.Share = q.NotifyQueued, KeyName(q.Description), share(q.Share, q.Extra)
	return it, nil
}

// ReleaseItem returns the item for a request.
func (s *Session) ReleaseItem(q *store.ReleaseRequest) (Item, error) {
	it, err := s.ownerItem(q.Key, q.Owner)
	if err == nil {
		err = cmp.Or(checkToken(q.Token), s.conn.Features.CheckRest(q))
	}
	switch {
	case err != nil:
		return it, err
	case q.HoldBack < 0, q.Requeue != nil && q.Requeue.Key != q.Key:
		return it, fmt.Errorf("%w: a negative time to keep, or a requeue for another key", store.ErrInvalidOption)
	}
	s.Forget(q.Owner) // whatever becomes of this, it waits no longer
	it.Token, it.Keep, it.Uncertain = q.Token, Micros(q.HoldBack), q.Uncertain
	if q.Rest != nil {
		it.Rest = share(*q.Rest, 0)
	}
	if q.Requeue != nil {
		requeue, err := s.AcquireItem(q.Requeue)
		if err != nil {
			return it, err
		}
		it.Requeue = &requeue
	}
	return it, nil
}

// RenewItem returns the item for a request.
func (s *Session) RenewItem(q *store.RenewRequest) (Item, error) {
	it, err := s.ownerItem(q.Key, q.Owner)
	if err == nil {
		err = cmp.Or(checkToken(q.Token), s.conn.Features.Check(q.Share, 0))
	}
	if err == nil && q.TTL <= 0 {
		err = errTTL
	}
	it.TTL, it.Token, it.Watch, it.Share = Micros(q.TTL), q.Token, q.NotifyQueued, share(q.Share, 0)
	return it, err
}

// item begins an item about a key.
func (s *Session) item(key string) (Item, error) {
	if err := CheckKey(key); err != nil {
		return Item{}, err
	}
	return s.conn.Tables.Item(key), nil
}

// ownerItem begins an item about an owner's request for a key.
func (s *Session) ownerItem(key, owner string) (Item, error) {
	it, err := s.item(key)
	if err == nil && !IsField(owner) {
		err = fmt.Errorf("%w: owner must be printable ASCII without spaces", store.ErrInvalidOption)
	}
	if err == nil {
		it.Owner = s.conn.Tables.Owner(owner)
	}
	return it, err
}

// maxToken is the largest token that a client can raise the counter to, so that no
// request makes it overflow.
const maxToken = 1 << 62

func checkToken(token int64) error {
	if token < 0 || token > maxToken {
		return fmt.Errorf("%w: token %d", store.ErrInvalidOption, token)
	}
	return nil
}

var errTTL = fmt.Errorf("%w: TTL must be positive", store.ErrInvalidOption)

// maxFieldLen bounds owners and client ids.
const maxFieldLen = 128

// IsField reports whether s can be an owner: printable ASCII without spaces.
func IsField(s string) bool {
	if s == "" || len(s) > maxFieldLen {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
