// SPDX-License-Identifier: Apache-2.0

package springsql

import "github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"

// Questions are what a kind of database is asked about Java's table, and its limits.
type questions struct {
	asciiRegions bool // of other characters, the routines would take one for another
	// columns asks for the name, type and strictness of a table's columns, and unique
	// whether LOCK_KEY and REGION are its key. The argument is the table's name.
	columns, unique string
	// anyCase, if not empty, asks whether Java's table takes regions that differ only by case for the same.
	// Then otherRegion asks for one that a Go store has used. %s is the prefix.
	anyCase, otherRegion string
	// engine, if not empty, asks whether the table has transactions.
	engine string
}

var questionsTo = map[string]questions{sqlconn.KindPostgres: postgres, sqlconn.KindMySQL: mySQL}

var postgres = questions{
	columns: `SELECT lower(attname), format_type(atttypid, atttypmod), attnotnull AND NOT atthasdef AND attidentity = ''
		FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped`,
	unique: `SELECT EXISTS (SELECT 1 FROM pg_index i
		WHERE indrelid = to_regclass($1) AND indisunique AND indimmediate AND indisvalid
			AND indpred IS NULL AND indexprs IS NULL AND indnkeyatts = 2
			AND 2 = (SELECT count(*) FROM pg_attribute a WHERE a.attrelid = i.indrelid
				AND a.attnum IN (i.indkey[0], i.indkey[1]) AND lower(a.attname) IN ('lock_key', 'region')))`,
}

var mySQL = questions{
	asciiRegions: true,

	columns: `SELECT LOWER(COLUMN_NAME), LOWER(COLUMN_TYPE), IS_NULLABLE = 'NO' AND COLUMN_DEFAULT IS NULL AND EXTRA = ''
		FROM information_schema.COLUMNS` + mySQLTable,
	anyCase:     `SELECT EXISTS (SELECT 1 FROM information_schema.COLUMNS` + mySQLTable + ` AND COLUMN_NAME = 'REGION' AND COLLATION_NAME LIKE '%\_ci')`,
	otherRegion: `SELECT COALESCE(MIN(REGION), '') FROM %sLOCK_LEASE WHERE LOWER(REGION) = LOWER(?) AND REGION <> ?`,
	unique: `SELECT EXISTS (SELECT 1 FROM information_schema.STATISTICS` + mySQLTable + ` AND NON_UNIQUE = 0 GROUP BY INDEX_NAME
		HAVING COUNT(*) = 2 AND SUM(LOWER(COLUMN_NAME) IN ('lock_key', 'region') AND SUB_PART IS NULL) = 2)`,
	engine: `SELECT COALESCE(MAX(ENGINE), '') IN ('', 'InnoDB') FROM information_schema.TABLES` + mySQLTable,
}

// mySQLTable finds a table by its name, the argument, with or without its schema. The views
// that it is looked for in compare names without their case, by which the server may tell two
// tables apart.
const (
	mySQLTable = ` CROSS JOIN (SELECT ? AS name) AS wanted
		WHERE wanted.name IN ` + mySQLNames + ` AND (@@lower_case_table_names > 0 OR BINARY wanted.name IN ` + mySQLNames + `)`
	mySQLNames = `(CONCAT(TABLE_SCHEMA, '.', TABLE_NAME), IF(TABLE_SCHEMA = DATABASE(), TABLE_NAME, NULL))`
)
