// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
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

// Migrate makes the tables and routines that [New] needs. Run again it changes
// nothing, or brings the routines of this release. It needs the right to create
// tables and routines, which the store itself does not.
//
// The errors are those of New.
func Migrate(ctx context.Context, database Database, opts ...Option) error {
	script, err := Print(database, opts...)
	if err != nil {
		return err
	}
	db, release, err := database.open()
	if err != nil {
		return err
	}
	defer release()
	return database.execute(ctx, db, script)
}

// MigrateSpring makes what [NewSpring] needs: Java's own table if there is none, and
// two tables and the routines beside it. Run again it changes nothing, or brings the
// routines of this release. It needs the right to create tables and routines, which
// the store itself does not.
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
	if err == nil && len(table.columns) > 0 {
		err = st.adopt(table)
	}
	if err != nil {
		return opened(err)
	}
	script, err := springSchema(database.dialect, &s)
	if err != nil {
		return err
	}
	return database.execute(ctx, db, script)
}

// execute runs a script, which may have to wait its turn among those who use the locks.
func (d dialect) execute(ctx context.Context, db *sql.DB, script string) error {
	for try := 1; ; try++ {
		err := d.migrate(ctx, db, script)
		if err == nil {
			return nil
		}
		if !d.again(err) || try == tries || pause(ctx, firstPause<<(try-1)) != nil {
			return fmt.Errorf("sqlstore: migrate: %w", d.failure(err))
		}
	}
}

// Print returns what [Migrate] would run, for those who keep their schema by another
// tool. Of the database only its kind matters; its pool may be nil.
func Print(database Database, opts ...Option) (string, error) {
	s, err := newSettings(opts)
	if err != nil {
		return "", err
	}
	script, err := readSchema("native", database.dialect)
	return renamed(script, DefaultPrefix, s.prefix), err
}

// PrintSpring returns what [MigrateSpring] would run where there is no table, as
// [Print] does.
func PrintSpring(database Database, opts ...SpringOption) (string, error) {
	s, err := newSpringSettings(opts)
	if err != nil {
		return "", err
	}
	return springSchema(database.dialect, &s)
}

func readSchema(of string, d dialect) (string, error) {
	if d.name == "" {
		return "", errNoDatabase
	}
	text, err := schemaFiles.ReadFile("schema/" + of + "_" + d.name + ".sql")
	return string(text), err
}

func springSchema(d dialect, s *settings) (string, error) {
	script, err := readSchema("spring", d)
	if err != nil {
		return "", err
	}
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
