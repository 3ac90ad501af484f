// SPDX-License-Identifier: Apache-2.0

package springsql

import (
	"context"
	"embed"
	"regexp"
	"strings"

	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

//go:embed schema/*.sql
var schemaFiles embed.FS

// Migrate makes what [New] needs: Java's own table if there is none, and three tables and the
// routines beside it. A repetition changes nothing, or installs the routines of this release.
// Migrate needs the right to create tables and routines. The store itself does not.
//
// The errors are those of New; it refuses the same tables.
func Migrate(ctx context.Context, database Database, opts ...Option) error {
	st, err := open(database, opts)
	if err != nil {
		return err
	}
	defer st.Close()
	t, err := st.look(ctx)
	if err == nil && len(t.columns) > 0 {
		err = st.adopt(t)
	}
	if err != nil {
		return sqlconn.Opened("springsql", err)
	}
	script, err := st.settings.script(database)
	if err != nil {
		return err
	}
	return st.conn.Migrate(ctx, script)
}

// MigrationSQL returns the script that [Migrate] would run, for users who manage their schema
// by another tool. Only the kind of the database matters: its pool may be nil.
func MigrationSQL(database Database, opts ...Option) (string, error) {
	s, err := newSettings(opts)
	if err != nil {
		return "", err
	}
	return s.script(database)
}

func (s *settings) script(d Database) (string, error) {
	script, err := sqlconn.Script(schemaFiles, d)
	if err != nil {
		return "", err
	}
	if s.version == Spring6 {
		script = newInSpring7.ReplaceAllString(script, "")
		script = strings.ReplaceAll(script, "EXPIRED_AFTER", "CREATED_DATE")
	}
	return sqlconn.Renamed(script, DefaultPrefix, s.prefix), nil
}

var newInSpring7 = regexp.MustCompile(`(?m)^.*-- 7\.x\n`)
