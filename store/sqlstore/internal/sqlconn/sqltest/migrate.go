// SPDX-License-Identifier: Apache-2.0

package sqltest

import (
	"slices"
	"strings"
	"testing"
)

// marks tell a routine that was made anew from one that was left alone: a comment that a
// test gives to all of them, and where a new function keeps its comment, its version.
func marks(t *testing.T, d Database, prefix string) []string {
	t.Helper()
	return d.Texts(t, map[string]string{
		"postgres": "SELECT proname || ' ' || xmin FROM pg_proc WHERE starts_with(proname, lower($1)) ORDER BY 1",
		"mysql": `SELECT CONCAT(ROUTINE_NAME, ' ', ROUTINE_COMMENT) FROM information_schema.ROUTINES
			WHERE ROUTINE_SCHEMA = DATABASE() AND LOCATE(?, ROUTINE_NAME) = 1 ORDER BY 1`,
	}[d.Kind], prefix)
}

// markAll gives every routine its mark.
func markAll(t *testing.T, d Database, prefix string) {
	t.Helper()
	if d.Kind != "mysql" {
		return
	}
	for _, alter := range d.Texts(t, `SELECT CONCAT('ALTER PROCEDURE ', ROUTINE_NAME, ' COMMENT "untouched"') FROM information_schema.ROUTINES
		WHERE ROUTINE_SCHEMA = DATABASE() AND LOCATE(?, ROUTINE_NAME) = 1`, prefix) {
		d.Run(t, alter)
	}
}

// spoils are statements that replace a routine with one that answers nonsense, and drop
// another.
var spoils = map[string][2]string{
	"postgres": {
		"CREATE OR REPLACE FUNCTION %sclock(request JSONB) RETURNS BIGINT LANGUAGE sql AS 'SELECT 0::BIGINT'",
		"DROP FUNCTION %slist(JSONB)",
	},
	"mysql": {
		"CREATE OR REPLACE PROCEDURE %srenew(IN request LONGTEXT) SELECT 'nonsense'",
		"DROP PROCEDURE %slist",
	},
}

// migrateAgainReplacesNothing is a test: except what is missing, or was made by others.
func (s Suite) migrateAgainReplacesNothing(t *testing.T) {
	OnEach(t, func(t *testing.T, d Database) {
		prefix := d.NewPrefix(t)
		migrate := func() {
			t.Helper()
			if err := s.Migrate(t.Context(), d.Database, prefix); err != nil {
				t.Fatal(err)
			}
		}
		migrate()
		markAll(t, d, prefix)
		before := marks(t, d, prefix)
		if len(before) < 8 {
			t.Fatalf("routines: got %q, want all of them", before)
		}
		migrate()
		if got := marks(t, d, prefix); !slices.Equal(got, before) {
			t.Errorf("routines after the second migration: got %q, want the same as before, %q", got, before)
		}
		for _, spoil := range spoils[d.Kind] {
			d.Run(t, strings.Replace(spoil, "%s", prefix+s.Routines, 1))
		}
		migrate()
		changed := 0
		for i, got := range marks(t, d, prefix) {
			if got != before[i] {
				changed++
			}
		}
		if changed != len(spoils[d.Kind]) {
			t.Errorf("a migration replaced %d routines, want the %d that were missing or others'", changed, len(spoils[d.Kind]))
		}
		c := s.Join(t, s.open(t, d, prefix))
		c.Hold(Request("key", "a"))
		if err := c.Renew("key", "a"); err != nil {
			t.Errorf("Renew: got %v, want no error", err)
		}
		for _, err := range c.Session.List(t.Context(), "") {
			if err != nil {
				t.Error(err)
			}
		}
	})
}
