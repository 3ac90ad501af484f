// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"embed"

	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

//go:embed schema/*.sql
var schemaFiles embed.FS

// Migrate makes the tables and routines that [New] needs. A repetition changes nothing, or
// installs the routines of this release. Programs of releases with another schema are refused
// from then on; docs/stores/sql.md says in which order to update them. Migrate needs the right to create tables and
// routines. The store itself does not.
//
// The errors are those of New.
func Migrate(ctx context.Context, database Database, opts ...Option) error {
	s, err := newSettings(opts)
	if err != nil {
		return err
	}
	script, err := s.script(database)
	if err != nil {
		return err
	}
	conn, err := sqlconn.Open(database, s.config())
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Migrate(ctx, script)
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
	return sqlconn.Renamed(script, DefaultPrefix, s.prefix), err
}
