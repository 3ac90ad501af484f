// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"

	"github.com/asynclock/asynclock-go/pubsub"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

// A session is one client.
type session struct {
	*sqlconn.Session

	store  *Store
	id     string
	events func(store.Event)

	channel string        // what its inbox listens to
	inbox   *pubsub.Inbox // nil: waiters poll
}

var _ store.LimitSession = (*session)(nil)

// Close ends the inbox. It waits for that until ctx ends; it ends anyway.
func (s *session) Close(ctx context.Context) error {
	if !s.Leave() || s.inbox == nil {
		return nil
	}
	return s.inbox.Close(ctx)
}
