// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
)

// A migration makes the routines that are missing or differ, and leaves the others alone. A
// program may migrate at each start, and must not remove routines that others are calling at
// that moment. Each body has a stamp, a hash of the statement that made it, which shows
// whether the routine differs. Anything else that replaces a routine, such as an older
// release, removes its stamp.

// A migration is a script and where its tables and routines go.
type migration struct {
	script string
	schema sql.NullString // null: the database's default for names without one
}

func newMigration(script, prefix string) migration {
	schema, _, found := strings.Cut(prefix, ".")
	return migration{script, sql.NullString{String: schema, Valid: found}}
}

// Migrate runs a script, which may have to wait for others that use the locks.
func (c *Conn) Migrate(ctx context.Context, script string) error {
	m := newMigration(script, c.Prefix)
	for try := 1; ; try++ {
		err := c.dialect.migrate(ctx, c.db, m)
		if err == nil {
			return nil
		}
		if !c.dialect.again(err, "") && !c.dialect.locked(err) || try == tries || pause(ctx, firstPause<<(try-1)) != nil {
			return fmt.Errorf("%s: migrate: %w", c.Package, c.dialect.failure(err))
		}
	}
}

// stampPlace matches the begin of a routine's body, behind which a comment may follow.
var stampPlace = regexp.MustCompile(`AS \$\$|(?m:^(?:\w+: )?BEGIN$)`)

// stampPattern finds stamps.
var stampPattern = regexp.MustCompile(`-- asynclock [0-9a-f]{32}`)

// stamped returns the statement that makes a routine with its stamp in it.
func stamped(create string) (statement, stamp string) {
	sum := sha256.Sum256([]byte(create))
	stamp = fmt.Sprintf("-- asynclock %x", sum[:16])
	at := stampPlace.FindStringIndex(create)[1]
	return create[:at] + " " + stamp + create[at:], stamp
}

// A querier is a pool or one of its connections.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// stamps returns the stamps of the existing routines, by a query for their bodies.
func stamps(ctx context.Context, db querier, query string, schema sql.NullString) (map[string]bool, error) {
	rows, err := db.QueryContext(ctx, query, schema)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // everything has been read
	found := make(map[string]bool)
	for rows.Next() {
		var body string
		if err := rows.Scan(&body); err != nil {
			return nil, err
		}
		found[stampPattern.FindString(body)] = true
	}
	return found, rows.Err()
}
