// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// A listener is a pubsub.Source: one channel of PostgreSQL.
type listener struct {
	store   *Store
	channel string
}

// goodbye is how long a connection has for closing.
const goodbye = time.Second

// Receive connects and listens until the connection or ctx ends.
func (l *listener) Receive(ctx context.Context, confirmed func(), deliver func(payload string)) error {
	conn, err := l.store.connect(ctx)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
		defer cancel()
		_ = conn.Close(ctx) // what it had to say has been said
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{l.channel}.Sanitize()); err != nil {
		return err
	}
	confirmed()
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		deliver(n.Payload)
	}
}

// Publish sends a probe by a connection of the pool, as the routines send notifications.
func (l *listener) Publish(ctx context.Context, payload string) error {
	_, err := l.store.conn.DB().ExecContext(ctx, "SELECT pg_notify($1, $2)", l.channel, payload)
	return err
}
