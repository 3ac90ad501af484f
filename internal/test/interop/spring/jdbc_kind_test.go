// SPDX-License-Identifier: Apache-2.0

package spring

import (
	"database/sql"
	"net/url"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/asynclock/asynclock-go/store/sqlstore/springsql"
)

// A kind of database that both languages keep locks in.
type kind struct {
	name     string // as in the file with Java's tables
	variable string // says where a server is
	driver   string // of database/sql
	database func(*sql.DB) springsql.Database
	// forJava makes of what the variable says a URL for JDBC, a user and a password.
	forJava func(t *testing.T, address string) (url, user, password string)
	// zoned is address for sessions that are in a zone of time.
	zoned  func(t *testing.T, address string, z zone) string
	region string   // the oddest there may be
	utc    string   // the server's clock
	stamp  string   // the type of Java's columns of time
	drops  []string // find statements that drop what begins with INT_
}

// A zone of time, by its name and how far it is ahead of UTC.
type zone struct{ name, offset string }

var postgres = kind{
	name:     "postgresql",
	variable: "ASYNCLOCK_POSTGRES_URL",
	driver:   "pgx",
	database: springsql.Postgres,
	forJava: func(t *testing.T, address string) (string, string, string) {
		t.Helper()
		u := parseURL(t, address)
		password, _ := u.User.Password()
		return "jdbc:postgresql://" + u.Host + u.Path, u.User.Username(), password
	},
	zoned: func(t *testing.T, address string, z zone) string {
		t.Helper()
		u := parseURL(t, address)
		query := u.Query()
		query.Set("timezone", z.name)
		u.RawQuery = query.Encode()
		return u.String()
	},
	region: "Größe 注文 'a\" \\%_;-- " + strings.Repeat("界", 60),
	utc:    "clock_timestamp() AT TIME ZONE 'UTC'",
	stamp:  "TIMESTAMP",
	drops: []string{
		"SELECT 'DROP TABLE ' || oid::regclass || ' CASCADE' FROM pg_class WHERE relkind = 'r' AND starts_with(relname, lower('INT_'))",
		"SELECT 'DROP FUNCTION ' || oid::regprocedure FROM pg_proc WHERE starts_with(proname, lower('INT_'))",
	},
}

func parseURL(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

var mariaDB = kind{
	name:     "mysql",
	variable: "ASYNCLOCK_MYSQL_URL",
	driver:   "mysql",
	database: springsql.MySQL,
	forJava: func(t *testing.T, address string) (string, string, string) {
		t.Helper()
		c := parseDSN(t, address)
		return "jdbc:mariadb://" + c.Addr + "/" + c.DBName, c.User, c.Passwd
	},
	zoned: func(t *testing.T, address string, z zone) string {
		t.Helper()
		c := parseDSN(t, address)
		if c.Params == nil {
			c.Params = make(map[string]string)
		}
		c.Params["time_zone"] = "'" + z.offset + "'"
		return c.FormatDSN()
	},
	region: "Groesse 'a\" \\%_;-- " + strings.Repeat("x", 60), // ASCII, says springsql
	utc:    "UTC_TIMESTAMP(6)",
	stamp:  "DATETIME(6)",
	drops: []string{
		"SELECT CONCAT('DROP TABLE ', TABLE_NAME) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME LIKE 'INT_%'",
		"SELECT CONCAT('DROP ', ROUTINE_TYPE, ' ', ROUTINE_NAME) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE() AND ROUTINE_NAME LIKE 'INT_%'",
	},
}

func parseDSN(t *testing.T, address string) *mysql.Config {
	t.Helper()
	c, err := mysql.ParseDSN(address)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var kinds = map[string]kind{postgres.name: postgres, mariaDB.name: mariaDB}

func (k kind) open(t *testing.T, address string) *sql.DB {
	t.Helper()
	db, err := sql.Open(k.driver, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}
