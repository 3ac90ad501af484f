// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"errors"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// TestServersOfOtherSettings: what a server of MariaDB can be told in ways that matter here.
func TestServersOfOtherSettings(t *testing.T) {
	t.Parallel()
	s := startServer(t, servers.MariaDB.With("--log-bin", "--binlog-format=STATEMENT", "--innodb-rollback-on-timeout"))
	d := s.database()
	t.Run("a binary log of statements takes no locks", func(t *testing.T) {
		prefix := WithPrefix(newPrefix(t, d))
		if err := Migrate(t.Context(), d, prefix); err != nil {
			t.Fatal(err)
		}
		if err := MigrateSpring(t.Context(), d, prefix); err != nil {
			t.Fatal(err)
		}
		var schema *SchemaError
		if _, err := New(t.Context(), d, prefix); !errors.As(err, &schema) {
			t.Errorf("New: got %v, want a SchemaError", err)
		}
		if _, err := NewSpring(t.Context(), d, prefix); !errors.As(err, &schema) {
			t.Errorf("NewSpring: got %v, want a SchemaError", err)
		}
	})
	config := s.URL("asynclock")
	rows := MySQL(openDB(t, "mysql", config+"?binlog_format=ROW"))
	t.Run("a wait in vain ends no transaction of which others were told", func(t *testing.T) {
		testRowThatIsBeingMade(t, rows)
	})
}
