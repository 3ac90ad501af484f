// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/store"
)

// marks tell a routine that was made anew from one that was left alone: a comment that a
// test gives to all of them, and where a new function keeps its comment, its version.
func marks(t *testing.T, d Database, prefix string) []string {
	t.Helper()
	return texts(t, d, map[string]string{
		"postgres": "SELECT proname || ' ' || xmin FROM pg_proc WHERE starts_with(proname, lower($1)) ORDER BY 1",
		"mysql": `SELECT CONCAT(ROUTINE_NAME, ' ', ROUTINE_COMMENT) FROM information_schema.ROUTINES
			WHERE ROUTINE_SCHEMA = DATABASE() AND LOCATE(?, ROUTINE_NAME) = 1 ORDER BY 1`,
	}[d.name], prefix)
}

// markAll gives every routine its mark.
func markAll(t *testing.T, d Database, prefix string) {
	t.Helper()
	if d.name != "mysql" {
		return
	}
	for _, alter := range texts(t, d, `SELECT CONCAT('ALTER PROCEDURE ', ROUTINE_NAME, ' COMMENT "untouched"') FROM information_schema.ROUTINES
		WHERE ROUTINE_SCHEMA = DATABASE() AND LOCATE(?, ROUTINE_NAME) = 1`, prefix) {
		run(t, d, alter)
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

// TestMigrateAgainReplacesNothing: but what is missing, or was made by others.
func TestMigrateAgainReplacesNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d Database) {
		for name, again := range map[string]func(prefix string) error{
			"native": func(prefix string) error { return Migrate(t.Context(), d, WithPrefix(prefix)) },
			"spring": func(prefix string) error { return MigrateSpring(t.Context(), d, WithPrefix(prefix)) },
		} {
			t.Run(name, func(t *testing.T) {
				prefix, routines := newPrefix(t, d), ""
				if name == "spring" {
					routines = "LOCK_"
				}
				if err := again(prefix); err != nil {
					t.Fatal(err)
				}
				markAll(t, d, prefix)
				before := marks(t, d, prefix)
				if len(before) < 8 {
					t.Fatalf("routines: got %q, want all of them", before)
				}
				if err := again(prefix); err != nil {
					t.Fatal(err)
				}
				if got := marks(t, d, prefix); !slices.Equal(got, before) {
					t.Errorf("routines after the second migration: got %q, want the same as before, %q", got, before)
				}
				for _, spoil := range spoils[d.name] {
					run(t, d, strings.Replace(spoil, "%s", prefix+routines, 1))
				}
				if err := again(prefix); err != nil {
					t.Fatal(err)
				}
				changed := 0
				for i, got := range marks(t, d, prefix) {
					if got != before[i] {
						changed++
					}
				}
				if changed != len(spoils[d.name]) {
					t.Errorf("a migration replaced %d routines, want the %d that were missing or others'", changed, len(spoils[d.name]))
				}
				var st *Store
				var err error
				if name == "spring" {
					st, err = NewSpring(t.Context(), d, WithPrefix(prefix))
				} else {
					st, err = New(t.Context(), d, WithPrefix(prefix))
				}
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(st.Close)
				c := join(t, st)
				c.hold(request("key", "a"))
				if err := c.renew("key", "a"); err != nil {
					t.Errorf("Renew: got %v, want no error", err)
				}
				for _, err := range c.session.List(t.Context(), "") {
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	})
}

// TestRoutineMissingForAMoment: once a store is open, a routine that is missing may be
// back in a moment. Of one that another calls nobody can tell whether that was before the
// other's COMMIT, least of all with the schema of another release: what is
// said then must not be that nothing was held, as it would be by trying again.
func TestRoutineMissingForAMoment(t *testing.T) {
	t.Parallel()
	d := onMySQL(t)
	st := newTables(t, d)
	c := join(t, st)
	c.hold(request("key", "a"))
	run(t, d, "DROP PROCEDURE "+st.settings.prefix+"acquire")
	got := c.session.Acquire(t.Context(), []store.AcquireRequest{request("other", "b")})[0].Err
	if !errors.Is(got, store.ErrUnreachable) || errors.Is(got, store.ErrOutcomeUnknown) {
		t.Errorf("Acquire without its routine: got %v, want ErrUnreachable", got)
	}
	run(t, d, "DROP PROCEDURE "+st.settings.prefix+"begin")
	released := c.session.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "a"}})[0]
	if !errors.Is(released.Err, store.ErrOutcomeUnknown) {
		t.Errorf("Release that missed a routine of its own: got %+v, want ErrOutcomeUnknown", released)
	}
	var schema *SchemaError
	if _, err := New(t.Context(), d, WithPrefix(st.settings.prefix)); !errors.As(err, &schema) {
		t.Errorf("New without routines: got %v, want a SchemaError", err)
	}
}

// TestRoutinesReplacedUnderLoad: a migration that has to replace every routine lets no
// call fail.
func TestRoutinesReplacedUnderLoad(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d Database) {
		if d.name == "mysql" && !strings.Contains(texts(t, d, "SELECT VERSION()")[0], "MariaDB") {
			return // MySQL can't replace a procedure in one step: TestRoutineMissingForAMoment
		}
		st := newTables(t, d)
		c := join(t, st)
		script, err := Print(d, WithPrefix(st.settings.prefix))
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { // ends after some migrations
			for i := range 6 {
				other := strings.ReplaceAll(script, "\nBEGIN\n", "\nBEGIN\n\t-- release "+string(rune('0'+i))+"\n")
				if err := d.execute(ctx, d.db, newMigration(other, st.settings.prefix)); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		for {
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
				return
			default:
			}
			c.hold(request("key", "b"))
			if !c.release("key", "b") {
				t.Fatal("Release while routines are replaced: got WasHeld false, want true")
			}
		}
	})
}
