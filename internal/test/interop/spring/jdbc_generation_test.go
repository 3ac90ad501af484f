// SPDX-License-Identifier: Apache-2.0

package spring

import (
	"errors"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store/sqlstore/springsql"
)

// Why a table is of one generation: a peer of the other can't take part, or takes
// live locks.
func TestJDBCGenerationsDoNotMix(t *testing.T) {
	kit.Require(t, "ASYNCLOCK_SPRING")
	t.Parallel()

	t.Run("6.5 in a table of 7.0", func(t *testing.T) {
		t.Parallel()
		b := javaTable(t, postgres, since7)
		b.openPeer(t).Do("lock", "key")
		b.change(t, "UPDATE INT_LOCK SET CREATED_DATE = CREATED_DATE - INTERVAL '1' HOUR") // a holder that has renewed ever since
		b.line = before7.line
		java := b.openStranger(t)
		if got := java.Do("trylock", "other"); got != "false" {
			t.Errorf("tryLock of a free key: got %s, want false, for want of an EXPIRED_AFTER", got)
		}
		if got := java.Do("trylock", "key"); got != "true" {
			t.Errorf("tryLock of a live lock: got %s, want true, as the documentation warns", got)
		}
	})

	t.Run("7.0 in a table of 6.5", func(t *testing.T) {
		t.Parallel()
		b := javaTable(t, postgres, before7)
		b.line = since7.line
		if got := b.openStranger(t).Fails("trylock", "key"); got != "CannotAcquireLockException" {
			t.Errorf("tryLock without the column: got %q, want CannotAcquireLockException", got)
		}
	})
}

// Go refuses a table that is not of the generation that was asked for.
func TestJDBCGenerationByName(t *testing.T) {
	onEachTable(t, func(t *testing.T, b table) {
		other := springsql.Spring7
		if b.version == springsql.Spring7 {
			other = springsql.Spring6
		}
		b.wantRefused(t, "was asked for", springsql.WithSpringVersion(other))
		b.store(t, springsql.WithSpringVersion(b.version))
	})
}

// Go refuses a table that both generations can use, or do.
func TestJDBCGenerationsMixed(t *testing.T) {
	kit.Require(t, "ASYNCLOCK_SPRING")
	t.Parallel()
	b := newTable(t, postgres, since7)
	b.openPeer(t).Do("lock", "key")
	b.store(t)
	b.change(t, "UPDATE INT_LOCK SET CREATED_DATE = EXPIRED_AFTER + INTERVAL '1' SECOND") // as 6.5 does, once the lock's first TTL is over
	b.wantRefused(t, "before 7.0 writes to the table")

	b.change(t, "DELETE FROM INT_LOCK")
	b.exec(t, "ALTER TABLE "+b.prefix+"LOCK ALTER EXPIRED_AFTER DROP NOT NULL")
	b.line = before7.line
	b.openPeer(t) // can lock and unlock there now
	b.wantRefused(t, "can be left out")
}

// wantRefused checks that Go does not open the table, and says why.
func (b table) wantRefused(t *testing.T, why string, options ...springsql.Option) {
	t.Helper()
	store, err := b.sqlPart().open(t.Context(), b.db, options...)
	if err == nil {
		store.Close()
	}
	var schema *springsql.SchemaError
	if !errors.As(err, &schema) || !strings.Contains(schema.Why, why) {
		t.Errorf("opening the table: got %v, want a SchemaError that says %q", err, why)
	}
}

// A table that Go makes is Java's own, column by column.
func TestJDBCTableIsJavas(t *testing.T) {
	onEachTable(t, func(t *testing.T, b table) {
		want := b.columns(t)
		b.exec(t, "DROP TABLE "+b.prefix+"LOCK")
		options := []springsql.Option{springsql.WithPrefix(b.prefix), springsql.WithSpringVersion(b.version)}
		if err := springsql.Migrate(t.Context(), b.kind.database(b.db), options...); err != nil {
			t.Fatal(err)
		}
		if got := b.columns(t); got != want || want == "" {
			t.Errorf("the table that Go makes: got\n%s\nwant\n%s", got, want)
		}
	})
}

// columns describes the columns and the primary key of the table.
func (b table) columns(t *testing.T) string {
	t.Helper()
	return strings.Join(b.texts(t, `
		SELECT concat_ws(' ', lower(c.column_name), c.data_type, coalesce(c.character_maximum_length, c.datetime_precision),
			'nullable:', c.is_nullable, 'default:', coalesce(c.column_default, 'none'), 'place in the key:', k.ordinal_position)
		FROM information_schema.columns c LEFT JOIN information_schema.key_column_usage k
			ON k.table_schema = c.table_schema AND k.table_name = c.table_name AND k.column_name = c.column_name
		WHERE lower(c.table_name) = lower('`+b.prefix+`LOCK') ORDER BY 1`), "\n")
}

// How a table gets from one generation to the next, as docs/stores/spring.md says: while
// nobody uses it. A store that does all the same is told, and does no harm.
func TestJDBCUpgrade(t *testing.T) {
	kit.Require(t, "ASYNCLOCK_SPRING")
	t.Parallel()
	for _, k := range []kind{postgres, mariaDB} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			b := newTable(t, k, before7)
			late := b.client(t)
			before := lock(t, late, "key")
			unlock(t, before)
			java6 := b.openPeer(t)
			java6.Do("lock", "key")
			java6.Close()

			b.exec(t, "DELETE FROM "+b.prefix+"LOCK")
			b.exec(t, "ALTER TABLE "+b.prefix+"LOCK ADD EXPIRED_AFTER "+k.stamp+" NOT NULL")
			if err := springsql.Migrate(t.Context(), k.database(b.db), springsql.WithPrefix(b.prefix)); err != nil {
				t.Fatal(err)
			}
			b.release = since7
			java, client := b.openPeer(t), b.client(t)
			lease := lock(t, client, "key")
			if lease.Token() <= before.Token() {
				t.Errorf("token after the change: got %d, want more than %d", lease.Token(), before.Token())
			}
			wantRefused(t, java, "key")
			unlock(t, lease)
			java.Do("lock", "key")
			wantHeld(t, client, "key")

			var schema *springsql.SchemaError
			if _, err := late.TryLock(t.Context(), "other"); !errors.As(err, &schema) {
				t.Errorf("TryLock by a store of the old table: got %v, want a SchemaError", err)
			}
		})
	}
}
