// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
)

var postgres = dialect{
	name:    "postgres",
	call:    func(routine string) string { return "SELECT " + routine + "($1::text::jsonb)::text" },
	failure: postgresFailure,
	again:   func(err error) bool { return postgresRetries[sqlState(err)] },
	missing: func(err error) bool {
		state := sqlState(err)
		return state == "42P01" || state == "42883" || state == "3F000"
	},

	// One message of several statements is one transaction.
	migrate: func(ctx context.Context, db *sql.DB, script string) error {
		_, err := db.ExecContext(ctx, "SELECT pg_advisory_xact_lock(hashtext('asynclock migrate'));\n"+script)
		return err
	},

	columns: `SELECT lower(attname), format_type(atttypid, atttypmod), attnotnull AND NOT atthasdef
		FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped`,
	unique: `SELECT EXISTS (SELECT 1 FROM pg_index i
		WHERE indrelid = to_regclass($1) AND indisunique AND indimmediate AND indisvalid
			AND indpred IS NULL AND indexprs IS NULL AND indnkeyatts = 2
			AND 2 = (SELECT count(*) FROM pg_attribute a WHERE a.attrelid = i.indrelid
				AND a.attnum = ANY (i.indkey) AND lower(a.attname) IN ('lock_key', 'region')))`,
}
