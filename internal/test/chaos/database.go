// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// A database is a PostgreSQL for rows to write to, with data that ends with it.
type database struct {
	*servers.Database

	url string
}

// errNoDatabase says that none can be started here. A run can do without.
var errNoDatabase = errors.New("PostgreSQL is not installed: no SQL row among the resources")

func findDatabase() error {
	if _, err := servers.Postgres.Find(); err != nil {
		return fmt.Errorf("%w (%w)", errNoDatabase, err)
	}
	return nil
}

// startDatabase starts one and makes the tables.
func startDatabase(ctx context.Context) (*database, error) {
	if err := findDatabase(); err != nil {
		return nil, err
	}
	d, err := servers.Postgres.Start(ctx)
	if err != nil {
		return nil, err
	}
	url := d.URL(servers.Postgres.System)
	if err := makeRow(ctx, url); err != nil {
		d.Close()
		return nil, err
	}
	return &database{d, url}, nil
}
