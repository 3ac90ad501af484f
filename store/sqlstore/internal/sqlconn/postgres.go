// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/asynclock/asynclock-go/internal/sqlfence"
	"github.com/asynclock/asynclock-go/store"
)

var postgres = dialect{
	name:    KindPostgres,
	batch:   128,
	failure: postgresFailure,
	state:   postgresState,
	locked:  func(err error) bool { return postgresState(err) == "55P03" },
	again:   func(err error, _ string) bool { return postgresRetries[postgresState(err)] },
	missing: func(err error) bool {
		state := postgresState(err)
		return state == "42P01" || state == "42883" || state == "3F000" || state == "42704" // the last is the type of a table's rows
	},
	duplicate: func(err error) bool { return postgresState(err) == "23505" },
	runs:      "SELECT ",
	call:      callPostgres,

	fence: &sqlfence.Postgres,

	migrate: migratePostgres,

	questions: postgresQuestions,
	clock:     "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint",

	refuses: "SELECT CASE current_setting('transaction_read_only') WHEN 'on' THEN 'the server is read-only (transaction_read_only)' ELSE '' END",
}

// callPostgres calls a function. After driver.ErrBadConn database/sql sends a statement
// again. Only pgx limits this error to statements that were never sent. With other drivers
// the statement must not be sent again, because the answer to the second try would be taken
// for the first.
func callPostgres(ctx context.Context, db *sql.DB, r routineCall) (out string, err error) {
	statement, inLine := "SELECT "+r.routine+calling, strconv.FormatInt(max(r.inLine.Milliseconds(), 1), 10)
	if r.whole {
		return callInTransaction(ctx, db, statement+commitSoon, r.argument, inLine)
	}
	if _, ours := db.Driver().(*stdlib.Driver); ours {
		err = db.QueryRowContext(ctx, statement, r.argument, inLine).Scan(&out)
		return out, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }() // back to the pool
	if err = conn.QueryRowContext(ctx, statement, r.argument, inLine).Scan(&out); errors.Is(err, driver.ErrBadConn) {
		err = errCut
	}
	return out, err
}

// calling bounds how long the routine waits for a row, or a table, that others have locked. FROM comes
// first, and what is left of || before what is right. The COMMIT has no such bound: it may have to wait
// until others have sent their notifications.
const calling = "($1::text::jsonb)::text || left(set_config('lock_timeout', NULL, TRUE), 0) FROM set_config('lock_timeout', $2, TRUE) bound"

// commitSoon gives the client a second between the routine's answer and its COMMIT. The
// server then ends the transaction of a client that has stopped there. Until then the rows of
// the whole batch are locked, and no TTL helps.
const commitSoon = ", set_config('idle_in_transaction_session_timeout', '1000', TRUE) soon"

func callInTransaction(ctx context.Context, db *sql.DB, statement string, args ...any) (out string, err error) {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return "", err
	}
	if err := tx.QueryRowContext(ctx, statement, args...).Scan(&out); err != nil {
		_ = tx.Rollback() // it has failed already, and err says why
		return "", err
	}
	if err = tx.Commit(); errors.Is(err, driver.ErrBadConn) {
		err = errCut
	}
	return out, err
}

// errCut is driver.ErrBadConn of a statement that may have been sent.
var errCut = errors.New("database: the connection broke")

// postgresStates says what a SQLSTATE means, or its class, the first two characters. Nothing
// has been done after these errors, except after those of unknown outcome.
var postgresStates = map[string]error{
	// The connection: within a session a pooler reports this about its own connection to the
	// server, on which the statement was under way.
	"08":    store.ErrOutcomeUnknown,
	"40003": store.ErrOutcomeUnknown, // the server itself does not know
	"25P03": store.ErrUnreachable,    // a transaction that stood still or
	"25P04": store.ErrUnreachable,    // lasted for too long
	"53":    store.ErrUnreachable,    // out of connections, memory, disk
	"54000": store.ErrUnreachable,    // the queue of messages is full
	"57":    store.ErrUnreachable,    // shutting down, crashed, starting up, canceled
	"58":    store.ErrUnreachable,    // trouble with files
	"25006": store.ErrUnreachable,    // a replica: a failover is under way
	"40":    store.ErrUnreachable,    // rolled back, and again each time
	"28":    store.ErrDenied,
	"42501": store.ErrDenied,
	"3D000": store.ErrDenied, // no such database
}

// postgresRetries are the SQLSTATEs after which the server recommends to try again.
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
