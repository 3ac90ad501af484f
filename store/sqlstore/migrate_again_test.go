// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

// TestRoutineMissingForAMoment: once a store is open, a routine that is missing may be
// back in a moment. Of one that another calls nobody can tell whether that was before the
// other's COMMIT, least of all with the schema of another release: what is
// said then must not be that nothing was held, as it would be by trying again.
func TestRoutineMissingForAMoment(t *testing.T) {
	t.Parallel()
	d := sqltest.OnMySQL(t)
	st := newTables(t, d)
	c := join(t, st)
	c.Hold(sqltest.Request("key", "a"))
	d.Run(t, "DROP PROCEDURE "+st.settings.prefix+"acquire")
	got := c.Session.Acquire(t.Context(), []store.AcquireRequest{sqltest.Request("other", "b")})[0].Err
	if !errors.Is(got, store.ErrUnreachable) || errors.Is(got, store.ErrOutcomeUnknown) {
		t.Errorf("Acquire without its routine: got %v, want ErrUnreachable", got)
	}
	d.Run(t, "DROP PROCEDURE "+st.settings.prefix+"begin")
	released := c.Session.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "a"}})[0]
	if !errors.Is(released.Err, store.ErrOutcomeUnknown) {
		t.Errorf("Release that missed a routine of its own: got %+v, want ErrOutcomeUnknown", released)
	}
	var schema *SchemaError
	if _, err := New(t.Context(), d.Database, WithPrefix(st.settings.prefix)); !errors.As(err, &schema) {
		t.Errorf("New without routines: got %v, want a SchemaError", err)
	}
}

// TestRoutinesReplacedUnderLoad: a migration that has to replace every routine lets no
// call fail.
func TestRoutinesReplacedUnderLoad(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		if d.Kind == "mysql" && !strings.Contains(d.Texts(t, "SELECT VERSION()")[0], "MariaDB") {
			return // MySQL can't replace a procedure in one step: TestRoutineMissingForAMoment
		}
		st := newTables(t, d)
		c := join(t, st)
		script, err := MigrationSQL(d.Database, WithPrefix(st.settings.prefix))
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { // ends after some migrations
			for i := range 6 {
				other := strings.ReplaceAll(script, "\nBEGIN\n", "\nBEGIN\n\t-- release "+string(rune('0'+i))+"\n")
				if err := st.conn.Migrate(ctx, other); err != nil {
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
			c.Hold(sqltest.Request("key", "b"))
			if !c.Release("key", "b") {
				t.Fatal("Release while routines are replaced: got WasHeld false, want true")
			}
		}
	})
}
