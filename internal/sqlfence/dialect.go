// SPDX-License-Identifier: Apache-2.0

package sqlfence

import "fmt"

// A Dialect has the statements for one kind of database. In each, %s is the table.
type Dialect struct {
	// raise raises the fence of a row, the first argument, to a token, the second, and never lowers
	// it. It keeps all other transactions from doing so until its own ends. It returns the fence's
	// new value, unless there is a read.
	raise string
	read  string // returns the fence's value, as it is behind all snapshots

	create string // makes the table, if there is none
	probe  string // fails without a table that has both columns
	// migrate does both in one statement, which fails only if there is no such table in the end. It has create for a
	// second argument. Empty: a statement that fails does no harm.
	migrate string
}

// Postgres is for PostgreSQL.
var Postgres = Dialect{
	raise: `INSERT INTO %s AS f VALUES ($1, $2)
		ON CONFLICT (key) DO UPDATE SET token = GREATEST(f.token, EXCLUDED.token) RETURNING f.token`,
	create: `CREATE TABLE IF NOT EXISTS %s (
	key TEXT COLLATE "C" PRIMARY KEY,
	token BIGINT NOT NULL
)`,
	// A statement that fails would end a transaction of the caller's. Of several who make the table at once, some fail:
	// inside, that is undone alone.
	migrate: `DO $$ BEGIN
	IF to_regclass('%[1]s') IS NULL THEN
		BEGIN
			%[2]s;
		EXCEPTION WHEN unique_violation OR duplicate_table OR duplicate_object THEN
		END;
	END IF;
	PERFORM key, token FROM %[1]s WHERE FALSE;
END $$`,
}

// MySQL is for MariaDB and MySQL.
var MySQL = Dialect{
	raise: "INSERT INTO %s VALUES (?, ?) ON DUPLICATE KEY UPDATE token = GREATEST(token, VALUES(token))",
	read:  "SELECT token FROM %s WHERE `key` = ? FOR UPDATE",
	create: "CREATE TABLE IF NOT EXISTS %s (\n" +
		"\t`key` VARBINARY(2048) NOT NULL PRIMARY KEY,\n" +
		"\ttoken BIGINT NOT NULL\n" +
		") ENGINE = InnoDB ROW_FORMAT = DYNAMIC",
	probe: "SELECT `key`, token FROM %s WHERE FALSE",
}

// SQLite is for SQLite 3.35 and newer.
var SQLite = Dialect{
	raise: `INSERT INTO %s VALUES (?, ?)
		ON CONFLICT (key) DO UPDATE SET token = MAX(token, excluded.token) RETURNING token`,
	create: `CREATE TABLE IF NOT EXISTS %s (
	key TEXT NOT NULL PRIMARY KEY,
	token INTEGER NOT NULL
)`,
	probe: "SELECT key, token FROM %s WHERE FALSE",
}

// Statement returns the statement that raises a fence in a table.
func (d *Dialect) Statement(table string) string { return fmt.Sprintf(d.raise, table) }

// Schema returns the statement that makes a table.
func (d *Dialect) Schema(table string) string { return fmt.Sprintf(d.create, table) }
