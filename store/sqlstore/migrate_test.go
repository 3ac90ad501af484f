// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/asynclock/asynclock-go/store"
)

// TestMigrateTogether: every replica of a program may migrate when it starts, also while
// others use the locks, and holders notice nothing.
func TestMigrateTogether(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d Database) {
		st := newTables(t, d)
		c := join(t, st)
		c.hold(request("held", "a"))
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := Migrate(t.Context(), d, WithPrefix(st.settings.prefix)); err != nil {
					t.Errorf("Migrate: got %v, want no error", err)
				}
			})
		}
		for range 20 {
			c.hold(request("key", "b"))
			c.release("key", "b")
		}
		all.Wait()
		if err := c.renew("held", "a"); err != nil {
			t.Errorf("Renew after migrations: got %v, want no error", err)
		}
	})
}

func TestPrintSaysWhatMigrateRuns(t *testing.T) {
	t.Parallel()
	for _, d := range []Database{Postgres(nil), MySQL(nil)} {
		script, err := Print(d, WithPrefix("app.locks_"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"CREATE TABLE IF NOT EXISTS app.locks_lock (", "app.locks_acquire("} {
			if !strings.Contains(script, want) {
				t.Errorf("Print for %s: %q is missing", d.name, want)
			}
		}
		if strings.Contains(script, "asynclock_") || strings.Contains(script, "INDEX IF NOT EXISTS app.") {
			t.Errorf("Print for %s: got names that are not ours to have", d.name)
		}
		old, err := PrintSpring(d, WithGeneration(Spring6))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(old, "EXPIRED_AFTER") || strings.Contains(old, "-- 7.x\n") || strings.Count(old, "\tCREATED_DATE ") != 1 {
			t.Errorf("PrintSpring of 6.x for %s: got columns of 7.x, or CREATED_DATE twice", d.name)
		}
	}
	if _, err := Print(Database{}); !errors.Is(err, store.ErrBadOption) {
		t.Errorf("Print for no database: got %v, want ErrBadOption", err)
	}
}
