// SPDX-License-Identifier: Apache-2.0

package springsql

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

func TestBadOptionsAreRefused(t *testing.T) {
	t.Parallel()
	d := Postgres(new(sql.DB))
	for name, o := range map[string]Option{
		"no option": nil, "no prefix": WithPrefix(""), "interval 0": WithPollInterval(0), "nil logger": WithLogger(nil),
		"no region": WithRegion(""), "a long region": WithRegion(strings.Repeat("x", 101)), "region of no UTF-8": WithRegion("\xff"),
		"blank region": WithRegion(" "), "region with NUL": WithRegion("a\x00"),
		"no version": WithSpringVersion(0), "a short TTL": WithRepositoryTTL(time.Millisecond), "negative skew": WithSkewWarning(-1),
	} {
		if _, err := New(t.Context(), d, o); !errors.Is(err, store.ErrInvalidOption) {
			t.Errorf("New with %s: got %v, want ErrInvalidOption", name, err)
		}
		if err := Migrate(t.Context(), d, o); !errors.Is(err, store.ErrInvalidOption) {
			t.Errorf("Migrate with %s: got %v, want ErrInvalidOption", name, err)
		}
	}
	if got := SpringVersion(9).String(); got != "SpringVersion(9)" {
		t.Errorf("String of no version: got %q", got)
	}
}

func TestMigrationSQLOf6x(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]Database{"PostgreSQL": Postgres(nil), "MySQL": MySQL(nil)} {
		script, err := MigrationSQL(d, WithPrefix("app.J_"), WithSpringVersion(Spring6))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(script, "EXPIRED_AFTER") || strings.Contains(script, "-- 7.x\n") || strings.Count(script, "\tCREATED_DATE ") != 1 {
			t.Errorf("MigrationSQL of 6.x for %s: got columns of 7.x, or CREATED_DATE twice", name)
		}
		if strings.Contains(script, "INT_") || !strings.Contains(script, "app.J_LOCK_ACQUIRE(") {
			t.Errorf("MigrationSQL for %s: got names that are not ours to have", name)
		}
	}
	if _, err := MigrationSQL(Database{}); !errors.Is(err, store.ErrInvalidOption) {
		t.Errorf("MigrationSQL for no database: got %v, want ErrInvalidOption", err)
	}
}
