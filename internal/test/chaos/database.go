// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/asynclock/asynclock-go/internal/proc"
	"github.com/asynclock/asynclock-go/internal/test/servers/dbserver"
)

// A database is a PostgreSQL for rows to write to, with data that ends with it.
type database struct {
	url     string
	data    *dbserver.Data
	process *proc.Process
}

// errNoDatabase says that none can be started here. A run can do without.
var errNoDatabase = errors.New("PostgreSQL is not installed: no SQL row among the resources")

func findDatabase() error {
	if _, err := dbserver.Postgres.Find(); err != nil {
		return fmt.Errorf("%w (%w)", errNoDatabase, err)
	}
	return nil
}

// startDatabase starts one and makes the tables.
func startDatabase(ctx context.Context) (*database, error) {
	if err := findDatabase(); err != nil {
		return nil, err
	}
	data, err := dbserver.NewData()
	if err != nil {
		return nil, err
	}
	d := &database{data: data}
	for try := range 20 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if !isFree(strconv.Itoa(port)) {
			continue
		}
		if err = d.run(ctx, strconv.Itoa(try), port); err == nil {
			return d, nil
		}
		d.stop()
	}
	d.close()
	return nil, fmt.Errorf("PostgreSQL does not start: %w", err)
}

// run makes data by a name, starts the process and waits until it answers.
func (d *database) run(ctx context.Context, name string, port int) (err error) {
	command, err := d.data.Prepare(ctx, dbserver.Postgres, name, port)
	if err != nil {
		return err
	}
	if d.process, err = proc.Start(command()); err != nil {
		return err
	}
	d.url = dbserver.Postgres.URL(net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), dbserver.Postgres.System)
	for range 1000 {
		if err = makeRow(ctx, d.url); err == nil {
			return nil
		}
		select {
		case <-d.process.Ended(): // the port is another's
			return fmt.Errorf("it ended: %w", d.process.Err())
		case <-time.After(30 * time.Millisecond):
		}
	}
	return err
}

// stop ends the process at once.
func (d *database) stop() {
	if d.process == nil {
		return
	}
	select {
	case <-d.process.Ended():
	default:
		_ = d.process.Child.Signal(dbserver.Postgres.Stop) // fails only if it has ended meanwhile
		<-d.process.Ended()
	}
}

func (d *database) close() {
	d.stop()
	_ = os.RemoveAll(d.data.Dir) // what is left is in the system's directory for such
}
