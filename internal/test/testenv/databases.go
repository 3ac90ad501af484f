// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"

	_ "github.com/go-sql-driver/mysql" // the driver mysql
	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx

	"github.com/asynclock/asynclock-go/internal/test/servers/dbserver"
)

// missingDatabases says which of them are not here.
func missingDatabases() (missing []need) {
	for _, k := range dbserver.Kinds {
		if _, err := k.Find(); err != nil {
			missing = append(missing, need{k.Name, k.Packages})
		}
	}
	return missing
}

// launchDatabases makes their data and starts them.
func (s *servers) launchDatabases(ctx context.Context) (err error) {
	if s.data, err = dbserver.NewData(); err != nil {
		return err
	}
	for _, k := range dbserver.Kinds {
		if err := s.launchDatabase(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

func (s *servers) launchDatabase(ctx context.Context, k *dbserver.Kind) error {
	command, err := s.data.Prepare(ctx, k, k.Driver, s.ports[0])
	if err != nil {
		return err
	}
	one := &server{name: k.Name, addr: address(s.ports[0]), dir: filepath.Join(s.dir, k.Driver), done: make(chan struct{})}
	if err := os.MkdirAll(one.dir, 0o700); err != nil {
		return err
	}
	log, err := os.Create(one.logfile())
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the server has its own
	cmd := command()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	one.pid, one.kill = cmd.Process.Pid, func() error { return cmd.Process.Signal(k.Stop) }
	go func() { // ends with the process, and stop waits for it
		_ = cmd.Wait() // how it ended is in its log
		close(one.done)
	}()
	s.ports = s.ports[1:]
	s.all, s.sql = append(s.all, one), append(s.sql, one)
	return nil
}

// testDatabase is the one that tests work in.
const testDatabase = "asynclock"

// awaitDatabases waits until all of them answer, and makes the tests' database.
func (s *servers) awaitDatabases(ctx context.Context) error {
	for i, k := range dbserver.Kinds {
		create := func(ctx context.Context) error { return createDatabase(ctx, k, s.sql[i]) }
		if err := await(ctx, k.Name, create); err != nil {
			return err
		}
	}
	return nil
}

func createDatabase(ctx context.Context, k *dbserver.Kind, one *server) error {
	if one.hasEnded() {
		return one.ended()
	}
	db, err := sql.Open(k.Driver, k.URL(one.addr, k.System))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // nothing is left to be said
	_, err = db.ExecContext(ctx, "CREATE DATABASE "+testDatabase)
	return err
}

// databaseEnv is what the tests learn about them.
func (s *servers) databaseEnv() (env []string) {
	for i, one := range s.sql {
		k := dbserver.Kinds[i]
		env = append(env, k.Variable+"="+k.URL(one.addr, testDatabase))
	}
	return env
}

// removeData removes the data of databases that have been stopped.
func (s *servers) removeData() {
	if s.data != nil {
		os.RemoveAll(s.data.Dir)
	}
}
