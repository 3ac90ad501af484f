// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"context"
	"database/sql"
	"regexp"
)

// postgresRoutine matches a statement that makes a routine.
var postgresRoutine = regexp.MustCompile(`(?s)CREATE OR REPLACE FUNCTION [^;]*? AS \$\$.*?\$\$;\n`)

const postgresBodies = `SELECT prosrc FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
	WHERE nspname = COALESCE(lower($1), current_schema()) AND prosrc LIKE '%-- asynclock %'`

// migratePostgres sends all statements in one message, which makes them one transaction.
func migratePostgres(ctx context.Context, db *sql.DB, m migration) error {
	known, err := stamps(ctx, db, postgresBodies, m.schema)
	if err != nil {
		return err
	}
	script := postgresRoutine.ReplaceAllStringFunc(m.script, func(create string) string {
		statement, stamp := stamped(create)
		if known[stamp] {
			return ""
		}
		return statement
	})
	_, err = db.ExecContext(ctx, "SELECT pg_advisory_xact_lock(hashtext('asynclock migrate'));\n"+script)
	return err
}
