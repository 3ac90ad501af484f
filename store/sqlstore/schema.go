// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"embed"
	"fmt"
	"regexp"
	"strings"
)

// A SchemaError says that a table is not what it has to be, and that locks in it
// would exclude nobody or not for long. Nothing was changed.
type SchemaError struct {
	Table string
	Why   string
}

func (e *SchemaError) Error() string { return "sqlstore: table " + e.Table + ": " + e.Why }

//go:embed schema/*.sql
var schemaFiles embed.FS

// MigrateSpring makes what [NewSpring] needs: Java's own table if there is none,
// and two tables and the routines beside it. Run again it changes nothing, or brings
// the routines of this release. It needs the right to create tables and routines,
// which the store itself does not.
//
// The errors are those of NewSpring; it refuses the same tables.
func MigrateSpring(ctx context.Context, database Database, opts ...SpringOption) error {
	s, err := newSpringSettings(opts)
	if err != nil {
		return err
	}
	db, release, err := database.open()
	if err != nil {
		return err
	}
	defer release()
	st := &Store{db: db, dialect: database.dialect, settings: s}
	table, err := st.springTable(ctx)
	if err != nil {
		return err
	}
	if len(table.columns) > 0 {
		if err := st.adopt(table); err != nil {
			return err
		}
	}
	script, err := springSchema(database.dialect, &s)
	if err != nil {
		return err
	}
	if err := database.migrate(ctx, db, script); err != nil {
		return fmt.Errorf("sqlstore: migrate: %w", database.failure(err))
	}
	return nil
}

// PrintSpring returns what [MigrateSpring] would run where there is no table, for
// those who keep their schema by another tool. Of the database only its kind matters;
// its pool may be nil.
func PrintSpring(database Database, opts ...SpringOption) (string, error) {
	s, err := newSpringSettings(opts)
	if err != nil {
		return "", err
	}
	return springSchema(database.dialect, &s)
}

func springSchema(d dialect, s *settings) (string, error) {
	text, err := schemaFiles.ReadFile("schema/spring_" + d.name + ".sql")
	if err != nil {
		return "", err
	}
	script := string(text)
	if s.spring.generation == Spring6 {
		script = newInSpring7.ReplaceAllString(script, "")
		script = strings.ReplaceAll(script, "EXPIRED_AFTER", "CREATED_DATE")
	}
	return renamed(script, DefaultSpringPrefix, s.prefix), nil
}

var newInSpring7 = regexp.MustCompile(`(?m)^.*-- 7\.x\n`)

// renamed gives a script's tables and routines another prefix. The name of an index
// has no schema: it is always in its table's.
func renamed(script, from, to string) string {
	bare := to[strings.LastIndexByte(to, '.')+1:]
	script = strings.ReplaceAll(script, "INDEX IF NOT EXISTS "+from, "INDEX IF NOT EXISTS \x00")
	script = regexp.MustCompile(`\b`+from).ReplaceAllString(script, to)
	return strings.ReplaceAll(script, "\x00", bare)
}
