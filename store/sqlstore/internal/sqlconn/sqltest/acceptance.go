// SPDX-License-Identifier: Apache-2.0

package sqltest

import (
	"context"
	"database/sql"
	"net"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/asynclock/asynclock-go/internal/test/acceptance"
	"github.com/asynclock/asynclock-go/internal/test/faultconn"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
)

// postgresScheme is what tells the URL of a PostgreSQL from others.
const postgresScheme = "postgres://"

// OpenURL opens a pool at a URL, by a dialer of the test's.
func OpenURL(url string, dial func(ctx context.Context, network, addr string) (net.Conn, error)) (Database, error) {
	if strings.HasPrefix(url, postgresScheme) {
		config, err := pgx.ParseConfig(url)
		if err != nil {
			return Database{}, err
		}
		config.DialFunc = dial
		return Postgres(stdlib.OpenDB(*config)), nil
	}
	config, err := mysql.ParseDSN(url)
	if err != nil {
		return Database{}, err
	}
	config.DialFunc = dial
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return Database{}, err
	}
	return MySQL(sql.OpenDB(connector)), nil
}

// OpenForWorker opens a store in a process of its own.
func (s Suite) OpenForWorker(url, prefix string) (store.Store, error) {
	d, err := OpenURL(url, new(net.Dialer).DialContext)
	if err != nil {
		return nil, err
	}
	return s.Open(context.Background(), d.Database, prefix)
}

// Prepare opens places on the server that a variable of the environment names, if any.
func (s Suite) Prepare(variable string) func(*testing.T) func(*testing.T) *acceptance.Env {
	return func(t *testing.T) func(*testing.T) *acceptance.Env {
		t.Helper()
		url := kit.Require(t, variable)
		return func(t *testing.T) *acceptance.Env {
			t.Helper()
			return s.place(t, url, "S"+strings.ReplaceAll(uuid.NewString(), "-", "")[:12]+"_")
		}
	}
}

// place makes a place with tables that nobody else uses, and checks in the end that nobody
// holds or waits in them.
func (s Suite) place(t *testing.T, url, prefix string) *acceptance.Env {
	t.Helper()
	env := acceptance.NewEnv(t)
	env.URL, env.Area = url, prefix
	open := func(dial func(ctx context.Context, network, addr string) (net.Conn, error)) Database {
		d, err := OpenURL(url, dial)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.DB.Close() })
		return d
	}
	admin := open(new(net.Dialer).DialContext)
	if err := s.Migrate(t.Context(), admin.Database, prefix); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.DropAll(t, prefix) })
	env.Connect = func(c *faultconn.Line) store.Store {
		d := open(func(ctx context.Context, _, addr string) (net.Conn, error) { return c.Dial(ctx, addr, new(net.Dialer)) })
		st, err := s.Open(context.Background(), d.Database, prefix)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(st.Close)
		return st
	}
	t.Cleanup(func() {
		st, err := s.Open(context.Background(), admin.Database, prefix)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(st.Close)
		acceptance.WantNothingListed(t, st)
	})
	return env
}
