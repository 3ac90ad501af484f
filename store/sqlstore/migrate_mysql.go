// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// migrateLock keeps two from migrating at a time.
const migrateLock = "asynclock migrate"

const mySQLBodies = `SELECT ROUTINE_DEFINITION FROM information_schema.ROUTINES
	WHERE ROUTINE_SCHEMA = COALESCE(?, DATABASE()) AND ROUTINE_DEFINITION LIKE '%-- asynclock %'`

// A routine takes two statements, of which each may have comments before it.
var (
	mySQLDrop   = regexp.MustCompile(`(?m)^DROP PROCEDURE `)
	mySQLCreate = regexp.MustCompile(`(?m)^CREATE PROCEDURE `)
)

// migrateMySQL runs statement after statement: nothing else can be done with those that
// make routines. MariaDB replaces a routine in one step; MySQL drops it before, and what
// is called meanwhile fails.
func migrateMySQL(ctx context.Context, db *sql.DB, m migration) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // back to the pool
	var got sql.NullBool
	if err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, 60)", migrateLock).Scan(&got); err != nil {
		return err
	}
	if !got.Bool {
		return fmt.Errorf("%w: another migration does not come to an end", store.ErrUnreachable)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_, _ = conn.ExecContext(ctx, "DO RELEASE_LOCK(?)", migrateLock) // otherwise it ends with the connection
	}()
	known, err := stamps(ctx, conn, mySQLBodies, m.schema)
	if err != nil {
		return err
	}
	var version string
	if err := conn.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
		return err
	}
	replaces := strings.Contains(version, "MariaDB")
	_, script, _ := strings.Cut(m.script, "DELIMITER //\n") // for the command line client
	drop := ""
	for statement := range strings.SplitSeq(script, "\n//\n") {
		var needed []string
		switch {
		case strings.TrimSpace(statement) == "":
		case mySQLDrop.MatchString(statement): // comes before the one that makes it
			drop = statement
		case mySQLCreate.MatchString(statement):
			create, stamp := stamped(statement)
			switch {
			case known[stamp]:
			case replaces:
				needed = []string{mySQLCreate.ReplaceAllString(create, "CREATE OR REPLACE PROCEDURE ")}
			default:
				needed = []string{drop, create}
			}
		default:
			needed = []string{statement}
		}
		for _, statement := range needed {
			if _, err := conn.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
	}
	return nil
}
