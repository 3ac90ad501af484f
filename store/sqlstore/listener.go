// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// A connector opens connections beside the pool: a connection that listens is in
// nobody else's way for as long as it does, and would starve a small pool.
type connector func(ctx context.Context) (*pgx.Conn, error)

// connector returns one that connects as the pool does. It is nil where the pool is
// not one of pgx.
func (d Database) connector(ctx context.Context, db *sql.DB) (connector, error) {
	if d.pool != nil {
		c := d.pool.Config()
		return func(ctx context.Context) (*pgx.Conn, error) {
			config := c.ConnConfig.Copy()
			if c.BeforeConnect != nil {
				if err := c.BeforeConnect(ctx, config); err != nil {
					return nil, err
				}
			}
			return connectTo(ctx, config)
		}, nil
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, d.failure(err)
	}
	defer func() { _ = conn.Close() }() // back to the pool
	var config *pgx.ConnConfig
	if err := conn.Raw(func(driverConn any) error {
		if c, ours := driverConn.(*stdlib.Conn); ours {
			config = c.Conn().Config()
		}
		return nil
	}); err != nil || config == nil {
		return nil, err
	}
	return func(ctx context.Context) (*pgx.Conn, error) { return connectTo(ctx, config.Copy()) }, nil
}

// connectTo connects with a configuration that was another's, whose receiver of
// notifications it may name: ours are to stay with the connection.
func connectTo(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	config.OnNotification = nil
	return pgx.ConnectConfig(ctx, config)
}

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

// Publish sends a probe by a connection of the pool, as the routines send what there
// is to say.
func (l *listener) Publish(ctx context.Context, payload string) error {
	_, err := l.store.db.ExecContext(ctx, "SELECT pg_notify($1, $2)", l.channel, payload)
	return err
}
