// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// migrateLock keeps two migrations from running at a time.
const migrateLock = "asynclock migrate"

const mySQLBodies = `SELECT ROUTINE_DEFINITION FROM information_schema.ROUTINES
	WHERE ROUTINE_SCHEMA = COALESCE(?, DATABASE()) AND ROUTINE_DEFINITION LIKE '%-- asynclock %'`

// A routine takes two statements. Each of them may have comments before it.
var (
	mySQLDrop   = regexp.MustCompile(`(?m)^DROP PROCEDURE `)
	mySQLCreate = regexp.MustCompile(`(?m)^CREATE PROCEDURE `)
)

// migrateMySQL runs statement after statement. Statements that make routines can't be sent in
// any other way.
func migrateMySQL(ctx context.Context, db *sql.DB, m migration) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // back to the pool
	unlock, err := lockMigrations(ctx, conn)
	if err != nil {
		return err
	}
	defer unlock()
	known, err := stamps(ctx, conn, mySQLBodies, m.schema)
	if err != nil {
		return err
	}
	var version string
	if err := conn.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
		return err
	}
	for _, s := range plan(m.script) {
		if s.stamp != "" && known[s.stamp] {
			continue
		}
		if err := s.run(ctx, conn, strings.Contains(version, "MariaDB")); err != nil {
			return err
		}
	}
	return nil
}

// lockMigrations waits until no other migration runs, and makes others wait until unlock is
// called.
func lockMigrations(ctx context.Context, conn *sql.Conn) (unlock func(), err error) {
	var got sql.NullBool
	if err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, 60)", migrateLock).Scan(&got); err != nil {
		return nil, err
	}
	if !got.Bool {
		return nil, fmt.Errorf("%w: another migration does not come to an end", store.ErrUnreachable)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_, _ = conn.ExecContext(ctx, "DO RELEASE_LOCK(?)", migrateLock) // otherwise it ends with the connection
	}, nil
}

// A statement is one of a script.
type statement struct {
	text  string
	drop  string // drops the routine that it makes; empty: it makes none
	stamp string // is in the body of that routine
}

// plan divides a script into statements. The statement that drops a routine comes before the
// one that makes it.
func plan(script string) (all []statement) {
	_, script, _ = strings.Cut(script, "DELIMITER //\n") // for the command line client
	drop := ""
	for text := range strings.SplitSeq(script, "\n//\n") {
		switch {
		case strings.TrimSpace(text) == "":
		case mySQLDrop.MatchString(text):
			drop = text
		case mySQLCreate.MatchString(text):
			create, stamp := stamped(text)
			all = append(all, statement{create, drop, stamp})
		default:
			all = append(all, statement{text: text})
		}
	}
	return all
}

// run runs the statement. MariaDB replaces a routine in one step. On MySQL the routine is
// dropped before, and calls in between fail.
func (s statement) run(ctx context.Context, conn *sql.Conn, replaces bool) error {
	texts := []string{s.text}
	switch {
	case s.drop == "":
	case replaces:
		texts = []string{mySQLCreate.ReplaceAllString(s.text, "CREATE OR REPLACE PROCEDURE ")}
	default:
		texts = []string{s.drop, s.text}
	}
	for _, text := range texts {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}
