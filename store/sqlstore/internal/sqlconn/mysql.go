// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/asynclock/asynclock-go/internal/sqlfence"
	"github.com/asynclock/asynclock-go/store"
)

var mySQL = dialect{
	name:    KindMySQL,
	batch:   32, // the server reads all of the argument anew for each item
	failure: mySQLFailure,
	state:   mySQLState,
	again: func(err error, routine string) bool {
		n := mySQLNumber(err)
		return n == 1213 || n == 1020 || isMissing(err, routine)
	},
	locked:   mySQLLocked,
	replaced: func(err error) bool { return mySQLNumber(err) == 1305 },
	missing: func(err error) bool {
		n := mySQLNumber(err)
		return n == 1146 || n == 1305
	},
	duplicate: func(err error) bool { return mySQLNumber(err) == 1062 },
	runs:      "CALL ",
	call:      callMySQL,

	fence: &sqlfence.MySQL,

	migrate: migrateMySQL,

	questions: mySQLQuestions,
	clock:     "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",

	// A routine runs with the rights of who made it, and might write to a replica that is read-only to all others.
	refuses: `SELECT CASE
		WHEN @@read_only NOT IN ('0', 'OFF') THEN 'the server is read-only (read_only)'
		WHEN @@log_bin AND @@binlog_format = 'STATEMENT' THEN 'the server logs statements (binlog_format = STATEMENT), which it '
			'refuses for what is written at READ COMMITTED, as locks are; set it to MIXED or ROW'
		ELSE '' END`,
}

// isMissing reports whether this routine is missing, rather than one that it calls. The
// missing call could come after the COMMIT.
func isMissing(err error, routine string) bool {
	name := routine[strings.LastIndexByte(routine, '.')+1:]
	return mySQLNumber(err) == 1305 && strings.HasSuffix(strings.ToLower(err.Error()), "."+strings.ToLower(name)+" does not exist")
}

// callMySQL sends the argument as hexadecimal digits. That is one round trip, where a
// prepared statement would take two. Digits need no escapes and mean the same under any
// character set of the connection. The routine begins and ends its transaction itself.
func callMySQL(ctx context.Context, db *sql.DB, r routineCall) (out string, err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }() // back to the pool
	err = conn.QueryRowContext(ctx, fmt.Sprintf("CALL %s(_utf8mb4 X'%X')", r.routine, r.argument)).Scan(&out)
	if mySQLNumber(err) != 0 && !mySQLLocked(err) {
		// A routine that was killed in the middle has not reached its ROLLBACK. The
		// connection must go back without locks, and with the application's own settings.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		for _, undo := range []string{
			"ROLLBACK",
			"SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL",
		} {
			_, _ = conn.ExecContext(ctx, undo) // should it fail, so does the connection
		}
	}
	return out, err
}

// mySQLNumbers says what an error's number means. After each of these errors nothing has been
// done.
var mySQLNumbers = map[uint16]error{
	1040: store.ErrUnreachable, // too many connections
	1203: store.ErrUnreachable,
	1226: store.ErrUnreachable, // too much of something for this user
	1021: store.ErrUnreachable, // disk full
	1037: store.ErrUnreachable, // out of memory
	1038: store.ErrUnreachable,
	1041: store.ErrUnreachable,
	1047: store.ErrUnreachable, // Galera: this node is not ready
	1114: store.ErrUnreachable, // table full
	1129: store.ErrUnreachable, // too many connections of ours have failed
	2003: store.ErrUnreachable, // a proxy can't connect to the server
	9001: store.ErrUnreachable, // likewise, ProxySQL
	1213: store.ErrUnreachable, // deadlock, again each time
	1020: store.ErrUnreachable, // likewise
	1290: store.ErrUnreachable, // read only: a failover is under way
	1836: store.ErrUnreachable,
	1792: store.ErrUnreachable,
	1044: store.ErrDenied,
	1045: store.ErrDenied,
	1130: store.ErrDenied, // from this host
	3118: store.ErrDenied, // account locked
	4151: store.ErrDenied,
	1820: store.ErrDenied, // password expired
	1862: store.ErrDenied,
	1049: store.ErrDenied, // no such database
	1142: store.ErrDenied,
	1143: store.ErrDenied,
	1227: store.ErrDenied,
	1370: store.ErrDenied,
	1698: store.ErrDenied,
}

// mySQLUnknown are errors of unknown outcome, because a routine goes on after its COMMIT.
// They are shutdown, interruption, kill, timeout (max_statement_time), and a proxy that has
// lost the server. Other errors of the connection, class 08, are also of unknown outcome.
var mySQLUnknown = map[uint16]bool{1053: true, 1317: true, 1927: true, 1969: true, 2006: true, 2013: true}

func mySQLFailure(err error) error {
	n := mySQLNumber(err)
	switch {
	case n == 0:
		return failure(err)
	case mySQLNumbers[n] != nil:
		return fmt.Errorf("%w: %w", mySQLNumbers[n], err)
	case mySQLUnknown[n], strings.HasPrefix(mySQLState(err), "08"):
		return fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, err)
	}
	return fmt.Errorf("%w: %w", errServer, err)
}

// mySQLNumber is the number of an error that the server sent; 0 for others.
func mySQLNumber(err error) uint16 {
	var sent *mysql.MySQLError
	if errors.As(err, &sent) {
		return sent.Number
	}
	return 0
}

// mySQLLocked: the routine waited too long for a row. It has ended its transaction itself.
func mySQLLocked(err error) bool { return mySQLNumber(err) == 1205 }

func mySQLState(err error) string {
	var sent *mysql.MySQLError
	if errors.As(err, &sent) {
		return string(sent.SQLState[:])
	}
	return ""
}
