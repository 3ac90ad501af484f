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
		_ = l.command(ctx, conn, "UNLISTEN") // a pooler may keep the server's connection for others
		_ = conn.Close(ctx)                  // what it had to say has been said
	}()
	if err := l.command(ctx, conn, "LISTEN"); err != nil {
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

// command begins or ends the listening. The channel is a secret, so it is a parameter, which LISTEN itself can't have:
// statements are shown in pg_stat_activity and pg_stat_statements, to every user with pg_monitor.
func (l *listener) command(ctx context.Context, conn *pgx.Conn, verb string) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT set_config('asynclock.channel', $1, true)", pgx.QueryExecModeExec, l.channel); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "DO $$ BEGIN EXECUTE format('"+verb+" %I', current_setting('asynclock.channel')); END $$")
		return err
	})
}

// Publish sends a probe by a connection of the pool, as the routines send notifications.
func (l *listener) Publish(ctx context.Context, payload string) error {
	_, err := l.store.conn.DB().ExecContext(ctx, "SELECT pg_notify($1, $2)", l.channel, payload)
	return err
}
