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
	if err := l.listen(ctx, conn); err != nil {
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

// listen subscribes to the channel. That is a secret, so it is a parameter, which LISTEN itself can't have: statements
// are shown in pg_stat_activity to every user with pg_monitor. Both statements are one round trip and one transaction.
func (l *listener) listen(ctx context.Context, conn *pgx.Conn) error {
	var batch pgx.Batch
	batch.Queue("SELECT set_config('asynclock.channel', $1, true)", l.channel)
	batch.Queue("DO $$ BEGIN EXECUTE format('LISTEN %I', current_setting('asynclock.channel')); END $$")
	return conn.SendBatch(ctx, &batch).Close()
}

// Publish sends a probe by a connection of the pool, as the routines send notifications.
func (l *listener) Publish(ctx context.Context, payload string) error {
	_, err := l.store.conn.DB().ExecContext(ctx, "SELECT pg_notify($1, $2)", l.channel, payload)
	return err
}
