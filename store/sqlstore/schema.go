// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"embed"
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
	s, err := newSettings(opts)
	if err != nil {
		return err
	}
	script, err := nativeScript(database.dialect, &s)
	if err != nil {
		return err
	}
	db, release, err := database.open()
	if err != nil {
		return err
	}
	defer release()
	return database.execute(ctx, db, newMigration(script, s.prefix))
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
	script, err := springScript(database.dialect, &s)
	if err != nil {
		return err
	}
	return database.execute(ctx, db, newMigration(script, s.prefix))
}

// Print returns what [Migrate] would run, for those who keep their schema by another
// tool. Of the database only its kind matters; its pool may be nil.
func Print(database Database, opts ...Option) (string, error) {
	s, err := newSettings(opts)
	if err != nil {
		return "", err
	}
	return nativeScript(database.dialect, &s)
}

// PrintSpring returns what [MigrateSpring] would run where there is no table, as
// [Print] does.
func PrintSpring(database Database, opts ...SpringOption) (string, error) {
	s, err := newSpringSettings(opts)
	if err != nil {
		return "", err
	}
	return springScript(database.dialect, &s)
}

func readSchema(of string, d dialect) (string, error) {
	if d.name == "" {
		return "", errNoDatabase
	}
	text, err := schemaFiles.ReadFile("schema/" + of + "_" + d.name + ".sql")
	return string(text), err
}

func nativeScript(d dialect, s *settings) (string, error) {
	script, err := readSchema("native", d)
	return renamed(script, DefaultPrefix, s.prefix), err
}

func springScript(d dialect, s *settings) (string, error) {
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
