// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/asynclock/asynclock-go/asynclock"
)

var postgres = dialect{
	name:    "postgres",
	batch:   128,
	failure: postgresFailure,
	state:   postgresState,
	again:   func(err error, _ string) bool { return postgresRetries[postgresState(err)] },
	missing: func(err error) bool {
		state := postgresState(err)
		return state == "42P01" || state == "42883" || state == "3F000"
	},
	call: callPostgres,

	guard: `INSERT INTO %s AS f VALUES ($1, $2)
		ON CONFLICT (key) DO UPDATE SET token = GREATEST(f.token, EXCLUDED.token) RETURNING f.token`,

	migrate: migratePostgres,

	columns: `SELECT lower(attname), format_type(atttypid, atttypmod), attnotnull AND NOT atthasdef
		FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped`,
	unique: `SELECT EXISTS (SELECT 1 FROM pg_index i
		WHERE indrelid = to_regclass($1) AND indisunique AND indimmediate AND indisvalid
			AND indpred IS NULL AND indexprs IS NULL AND indnkeyatts = 2
			AND 2 = (SELECT count(*) FROM pg_attribute a WHERE a.attrelid = i.indrelid
				AND a.attnum = ANY (i.indkey) AND lower(a.attname) IN ('lock_key', 'region')))`,
}

func callPostgres(ctx context.Context, db *sql.DB, routine, argument string, whole bool) (out string, err error) {
	statement := "SELECT " + routine + "($1::text::jsonb)::text"
	if !whole {
		err = db.QueryRowContext(ctx, statement, argument).Scan(&out)
		return out, err
	}
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return "", err
	}
	if err := tx.QueryRowContext(ctx, statement, argument).Scan(&out); err != nil {
		_ = tx.Rollback() // it has failed already, and why is said by err
		return "", err
	}
	return out, tx.Commit()
}

// postgresStates says what a SQLSTATE means, or the class that its first two
// characters are. None of these errors leaves anything done.
var postgresStates = map[string]error{
	"08":    asynclock.ErrUnreachable, // connection
	"53":    asynclock.ErrUnreachable, // out of connections, memory, disk
	"55P03": asynclock.ErrUnreachable, // lock_timeout
	"57P01": asynclock.ErrUnreachable, // shutting down
	"57P02": asynclock.ErrUnreachable, // crashed
	"57P03": asynclock.ErrUnreachable, // starting up
	"57014": asynclock.ErrUnreachable, // statement_timeout
	"25006": asynclock.ErrUnreachable, // a replica: a failover is under way
	"40":    asynclock.ErrUnreachable, // rolled back, and again each time
	"28":    asynclock.ErrDenied,
	"42501": asynclock.ErrDenied,
	"3D000": asynclock.ErrDenied, // no such database
}

// postgresRetries are those for which the server says: do it again.
var postgresRetries = map[string]bool{"40001": true, "40P01": true}

// postgresState finds the SQLSTATE, by the method that pgx and others have.
func postgresState(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}

func postgresFailure(err error) error {
	state := postgresState(err)
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) || pgconn.SafeToRetry(err) {
		return neverSent(err, state, postgresStates)
	}
	if state != "" {
		return fmt.Errorf("%w: %w", meaning(state, postgresStates), err)
	}
	return failure(err)
}
