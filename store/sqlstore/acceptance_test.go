// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"context"
	"database/sql"
	"flag"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/internal/test/acceptance"
	"github.com/asynclock/asynclock-go/internal/test/faultconn"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore"
)

// stores are tables of our own, and Java's, in each database.
var stores = []acceptance.Store{
	{Name: "postgres", Offers: acceptance.Processes | acceptance.Notified, Prepare: onDatabase("ASYNCLOCK_POSTGRES_URL", ownTables)},
	{Name: "mysql", Offers: acceptance.Processes, Prepare: onDatabase("ASYNCLOCK_MYSQL_URL", ownTables)},
	{Name: "Java's table in postgres", Offers: acceptance.AnyStore, Prepare: onDatabase("ASYNCLOCK_POSTGRES_URL", javasTable)},
	{Name: "Java's table in mysql", Offers: acceptance.AnyStore, Prepare: onDatabase("ASYNCLOCK_MYSQL_URL", javasTable)},
}

func TestStories(t *testing.T) { acceptance.Run(t, stores) }

func TestWhatIsClosedHasNoTimer(t *testing.T) { acceptance.WantNoTimers(t, stores) }

func TestMain(m *testing.M) {
	if os.Getenv("ASYNCLOCK_POSTGRES_URL") == "" { // examples can't skip themselves
		if err := flag.Set("test.skip", "^Example"); err != nil {
			panic(err)
		}
	}
	// pgx says goodbye to a server that is gone for up to 15 s.
	acceptance.Main(m, openForWorker, goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgconn.(*PgConn).asyncClose.func1"))
}

func openForWorker(url, prefix string) (store.Store, error) {
	d, _, err := openDatabase(url, new(net.Dialer).DialContext)
	if err != nil {
		return nil, err
	}
	return sqlstore.New(context.Background(), d, sqlstore.WithPrefix(prefix))
}

// postgresScheme is what tells the URL of a PostgreSQL from others.
const postgresScheme = "postgres://"

// openDatabase opens a pool at a URL, by a dialer of the test's.
func openDatabase(url string, dial func(ctx context.Context, network, addr string) (net.Conn, error)) (sqlstore.Database, *sql.DB, error) {
	if strings.HasPrefix(url, postgresScheme) {
		config, err := pgx.ParseConfig(url)
		if err != nil {
			return sqlstore.Database{}, nil, err
		}
		config.DialFunc = dial
		db := stdlib.OpenDB(*config)
		return sqlstore.Postgres(db), db, nil
	}
	config, err := mysql.ParseDSN(url)
	if err != nil {
		return sqlstore.Database{}, nil, err
	}
	config.DialFunc = dial
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return sqlstore.Database{}, nil, err
	}
	db := sql.OpenDB(connector)
	return sqlstore.MySQL(db), db, nil
}

// sqlTables are what a store of package sqlstore can be made of.
type sqlTables struct {
	migrate func(context.Context, sqlstore.Database, sqlstore.Option) error
	open    func(context.Context, sqlstore.Database, sqlstore.Option) (*sqlstore.Store, error)
}

var (
	ownTables = sqlTables{
		func(ctx context.Context, d sqlstore.Database, prefix sqlstore.Option) error {
			return sqlstore.Migrate(ctx, d, prefix)
		},
		func(ctx context.Context, d sqlstore.Database, prefix sqlstore.Option) (*sqlstore.Store, error) {
			return sqlstore.New(ctx, d, prefix)
		},
	}
	javasTable = sqlTables{
		func(ctx context.Context, d sqlstore.Database, prefix sqlstore.Option) error {
			return sqlstore.MigrateSpring(ctx, d, prefix)
		},
		func(ctx context.Context, d sqlstore.Database, prefix sqlstore.Option) (*sqlstore.Store, error) {
			return sqlstore.NewSpring(ctx, d, prefix)
		},
	}
)

// onDatabase opens places on a server that is running, if there is one.
func onDatabase(variable string, tables sqlTables) func(*testing.T) func(*testing.T) *acceptance.Env {
	return func(t *testing.T) func(*testing.T) *acceptance.Env {
		t.Helper()
		url := kit.Require(t, variable)
		return func(t *testing.T) *acceptance.Env {
			t.Helper()
			return openSQL(t, url, tables, "S"+strings.ReplaceAll(uuid.NewString(), "-", "")[:12]+"_")
		}
	}
}

// openSQL makes a place with tables that nobody else uses, and checks in the end that nobody
// holds or waits in them.
func openSQL(t *testing.T, url string, tables sqlTables, prefix string) *acceptance.Env {
	t.Helper()
	env := acceptance.NewEnv(t)
	env.URL, env.Area = url, prefix
	d, admin, err := openDatabase(url, new(net.Dialer).DialContext)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	if err := tables.migrate(t.Context(), d, sqlstore.WithPrefix(prefix)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dropTables(t, admin, url, prefix) })
	connect := func(d sqlstore.Database) store.Store {
		store, err := tables.open(context.Background(), d, sqlstore.WithPrefix(prefix))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(store.Close)
		return store
	}
	env.Connect = func(c *faultconn.Line) store.Store {
		d, db, err := openDatabase(url, func(ctx context.Context, _, addr string) (net.Conn, error) {
			return c.Dial(ctx, addr, new(net.Dialer))
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return connect(d)
	}
	t.Cleanup(func() { acceptance.WantNothingListed(t, connect(d)) })
	return env
}

// dropTables drops what Migrate made.
func dropTables(t *testing.T, db *sql.DB, url, prefix string) {
	t.Helper()
	find := `SELECT CONCAT('DROP TABLE ', TABLE_NAME) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND LOCATE(?, TABLE_NAME) = 1
		UNION ALL SELECT CONCAT('DROP PROCEDURE ', ROUTINE_NAME) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE() AND LOCATE(?, ROUTINE_NAME) = 1`
	if strings.HasPrefix(url, postgresScheme) {
		find = `SELECT 'DROP TABLE ' || oid::regclass || ' CASCADE' FROM pg_class WHERE relkind = 'r' AND starts_with(relname, lower($1))
			UNION ALL SELECT 'DROP FUNCTION IF EXISTS ' || oid::regprocedure || ' CASCADE' FROM pg_proc WHERE starts_with(proname, lower($2))`
	}
	rows, err := db.QueryContext(context.Background(), find, prefix, prefix)
	if err != nil {
		t.Error(err)
		return
	}
	defer rows.Close()
	var drops []string
	for rows.Next() {
		var drop string
		if err := rows.Scan(&drop); err != nil {
			t.Error(err)
		}
		drops = append(drops, drop)
	}
	if err := rows.Err(); err != nil {
		t.Error(err)
	}
	for _, drop := range drops {
		if _, err := db.ExecContext(context.Background(), drop); err != nil {
			t.Errorf("%s: %v", drop, err)
		}
	}
}
