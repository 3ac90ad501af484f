// SPDX-License-Identifier: Apache-2.0

package springsql

import (
	"database/sql"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

// A Database is the application's own pool of connections, and its dialect: [Postgres],
// [PostgresPool] or [MySQL]. The store never closes it. Package sqlstore has the same type.
//
// Every statement takes one connection from the pool for as long as it runs, and never two at
// once. It waits 20 ms at most for a row that others have locked. So a pool of one connection is
// enough. No statement runs inside a transaction of the application: such a transaction is bound
// to a connection that the store never sees.
type Database = sqlconn.Database

// Postgres takes a pool of database/sql for PostgreSQL 11 or newer.
func Postgres(db *sql.DB) Database { return sqlconn.Postgres(db) }

// PostgresPool takes a pool of pgx.
func PostgresPool(pool *pgxpool.Pool) Database { return sqlconn.PostgresPool(pool) }

// MySQL takes a pool for MariaDB 10.6 or MySQL 8.0 (written for it, never tried on it),
// or newer, of the driver go-sql-driver/mysql.
func MySQL(db *sql.DB) Database { return sqlconn.MySQL(db) }

// A SchemaError says that a table is not as required: locks in it would exclude nobody, or
// not for long. Nothing was changed.
type SchemaError = sqlconn.SchemaError
