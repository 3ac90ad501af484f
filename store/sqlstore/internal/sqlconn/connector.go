// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// A Connector opens connections beside the pool. A connection of the pool would be
// unavailable to others for as long as it listens, which would starve a small pool.
type Connector func(ctx context.Context) (*pgx.Conn, error)

// Connector returns one that connects as the pool does. It is nil where the pool is
// not one of pgx.
func (c *Conn) Connector(ctx context.Context) (Connector, error) {
	if c.pool != nil {
		return c.poolConnector(), nil
	}
	conn, err := c.db.Conn(ctx)
	if err != nil {
		return nil, c.Failure(err)
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

// poolConnector connects as a pool of pgx does.
func (c *Conn) poolConnector() Connector {
	pool := c.pool.Config()
	return func(ctx context.Context) (*pgx.Conn, error) {
		config := pool.ConnConfig.Copy()
		if pool.BeforeConnect != nil {
			if err := pool.BeforeConnect(ctx, config); err != nil {
				return nil, err
			}
		}
		return connectTo(ctx, config)
	}
}

// connectTo connects with a configuration of the application. That may name the application's
// receiver of notifications, which must not get ours. Statements are sent once, so none is prepared, and parameters
// stay apart from their text.
func connectTo(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	config.OnNotification, config.DefaultQueryExecMode = nil, pgx.QueryExecModeExec
	return pgx.ConnectConfig(ctx, config)
}
