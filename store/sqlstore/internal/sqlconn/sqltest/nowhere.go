// SPDX-License-Identifier: Apache-2.0

package sqltest

import (
	"errors"
	"testing"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

// nowhereIsSaid is a test: New says that it has got no database, or one where nobody listens.
func (s Suite) nowhereIsSaid(t *testing.T) {
	for _, d := range []sqlconn.Database{{}, sqlconn.Postgres(nil), sqlconn.PostgresPool(nil), sqlconn.MySQL(nil)} {
		if _, err := s.Open(t.Context(), d, "none_"); !errors.Is(err, store.ErrInvalidOption) {
			t.Errorf("New without a database: got %v, want ErrInvalidOption", err)
		}
	}
	for driver, d := range map[string]sqlconn.Database{
		"pgx":   sqlconn.Postgres(OpenDB(t, "pgx", "postgres://me@127.0.0.1:1/none")),
		"mysql": sqlconn.MySQL(OpenDB(t, "mysql", "me@tcp(127.0.0.1:1)/none")),
	} {
		if _, err := s.Open(t.Context(), d, "none_"); !errors.Is(err, store.ErrUnreachable) {
			t.Errorf("New by %s where nobody listens: got %v, want ErrUnreachable", driver, err)
		}
	}
}
