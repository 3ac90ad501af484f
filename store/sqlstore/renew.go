// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

// Renew is one call for the whole batch.
func (s *session) Renew(ctx context.Context, batch []store.RenewRequest) []store.RenewReply {
	return sqlconn.Do(ctx, s.Session, sqlconn.Routine[store.RenewRequest, store.RenewReply]{
		Name: "RENEW",
		Put: func(q *store.RenewRequest) (sqlconn.Item, error) {
			it, err := s.RenewItem(q)
			if s.inbox != nil && s.inbox.Live() { // it may not have been when the key was granted
				it.Inbox = s.channel
			}
			return it, err
		},
		Read: func(_ *store.RenewRequest, a sqlconn.Answer) (store.RenewReply, error) {
			reply := store.RenewReply{Waiters: a.Waiters, Limit: a.Limit}
			if !a.IsLimit() {
				return store.RenewReply{}, sqlconn.ErrReply
			}
			return reply, a.Renewed()
		},
		Failed: func(err error) store.RenewReply { return store.RenewReply{Err: err} },
	}, batch)
}
