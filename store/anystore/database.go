// SPDX-License-Identifier: Apache-2.0

package anystore

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore"
)

// dialing is the timeout of a connection whose URL gives none.
const dialing = 10 * time.Second

const unreadable = "its user, host, port, database or the value of a parameter can't be read"

// A database is a pool of our own.
type database struct {
	sqlstore.Database

	close func()
}

// openDatabase makes a pool, which connects when it is first used.
func openDatabase(ctx context.Context, l location) (database, error) {
	if strings.HasPrefix(l.client, "postgres") {
		return openPostgres(ctx, l)
	}
	return openMySQL(l)
}

func openPostgres(ctx context.Context, l location) (database, error) {
	config, err := pgxpool.ParseConfig(l.client + "://" + l.rest)
	if file := (*fs.PathError)(nil); errors.As(err, &file) {
		return database{}, badURL("%v", file)
	}
	if err != nil {
		return database{}, badURL(unreadable) // err may have a part of the password
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = dialing
	}
	conns := &dialed{dial: config.ConnConfig.DialFunc, open: make(map[net.Conn]bool)}
	config.ConnConfig.DialFunc = conns.Dial
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return database{}, badURL("%v", err) // of limits of the pool
	}
	return database{sqlstore.PostgresPool(pool), func() { conns.end(pool.Close) }}, nil
}

func openMySQL(l location) (database, error) {
	config, err := mysqlConfig(l.rest)
	if errors.Is(err, store.ErrInvalidOption) {
		return database{}, err
	}
	if err != nil {
		return database{}, badURL(unreadable)
	}
	if config.Timeout == 0 {
		config.Timeout = dialing
	}
	config.Logger = &mysql.NopLogger{} // its errors are returned
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return database{}, badURL(unreadable)
	}
	db := sql.OpenDB(connector)
	return database{sqlstore.MySQL(db), func() { _ = db.Close() }}, nil
}

// mysqlConfig reads a URL's text after the scheme. The driver itself has another form, of which only the parameters
// are the same.
func mysqlConfig(rest string) (*mysql.Config, error) {
	u, err := url.Parse("mysql://" + rest)
	if err != nil {
		return nil, err
	}
	if u.Query().Has("ssl-mode") { // as the command mysql has it; the driver would log in without TLS, and then set a variable
		return nil, badURL("instead of ssl-mode, this driver has tls=true")
	}
	port := u.Port()
	if port == "" {
		port = "3306"
	}
	// The address is in the text, because the driver takes the name in the certificate from there.
	config, err := mysql.ParseDSN("tcp(" + net.JoinHostPort(u.Hostname(), port) + ")/" + url.PathEscape(strings.TrimPrefix(u.Path, "/")) + "?" + strings.ReplaceAll(u.RawQuery, "/", "%2F"))
	if err != nil {
		return nil, err
	}
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	return config, nil
}

// unknown are the codes of what a server says to a URL that names a database or a parameter that it does not know, or
// a value that means nothing: those of PostgreSQL and of MariaDB.
var (
	unknownToPostgres = []string{"3D000", "42704", "22023"}
	unknownToMySQL    = []uint16{1049, 1193, 1231}
)

// refusal returns err, which is ErrInvalidOption if the server has refused what the URL says, however often it is asked.
func refusal(err error) error {
	postgres, maria := (*pgconn.PgError)(nil), (*mysql.MySQLError)(nil)
	switch {
	case errors.As(err, &postgres) && slices.Contains(unknownToPostgres, postgres.Code):
		return badURL("the server says: %s", postgres.Message)
	case errors.As(err, &maria) && slices.Contains(unknownToMySQL, maria.Number):
		return badURL("the server says: %s", maria.Message)
	}
	return err
}
