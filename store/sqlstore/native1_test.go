// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"embed"
	"errors"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/sqlconn"
	"github.com/asynclock/asynclock-go/internal/sqlconn/sqltest"
	"github.com/asynclock/asynclock-go/store"
)

// native1Files are the scripts of the schema "native 1", as they were.
//
//go:embed testdata/native1/*.sql
var native1Files embed.FS

// native1Tables are the store's own tables to a client from before keys were shared.
type native1Tables struct{ tables }

func (native1Tables) Request(_ time.Time, items []sqlconn.Item) any {
	return request{"native 1", items}
}

// A native1 is what a release with the schema "native 1" sends to the database.
type native1 struct {
	t      *testing.T
	conn   *sqlconn.Conn
	script string
}

func newNative1(t *testing.T, d sqltest.Database, prefix string) native1 {
	t.Helper()
	script, err := native1Files.ReadFile("testdata/native1/" + d.Kind + ".sql")
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSettings([]Option{WithPrefix(prefix)})
	if err != nil {
		t.Fatal(err)
	}
	config := s.config()
	config.Tables = native1Tables{}
	conn, err := sqlconn.Open(d.Database, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return native1{t, conn, sqlconn.Renamed(string(script), DefaultPrefix, prefix)}
}

func (n native1) migrate() {
	n.t.Helper()
	if err := n.conn.Migrate(n.t.Context(), n.script); err != nil {
		n.t.Fatal(err)
	}
}

// acquire requests all of the key for an owner.
func (n native1) acquire(owner string) (sqlconn.Answer, error) {
	n.t.Helper()
	micros := sqltest.Long.Microseconds()
	answers, err := n.conn.Call(n.t.Context(), "ACQUIRE", []sqlconn.Item{{Key: "key", Owner: owner, TTL: micros, Grant: micros, Alive: micros, Wait: true}})
	if err != nil {
		return sqlconn.Answer{}, err
	}
	return answers[0], nil
}

// wantSchemaError checks that a request was refused because of the schema.
func wantSchemaError(t *testing.T, what string, err error) {
	t.Helper()
	var schema *SchemaError
	if !errors.As(err, &schema) {
		t.Errorf("%s: got %v, want a SchemaError", what, err)
	}
}

// TestFromNative1: each release says clearly that the schema is of the other. A migration keeps who
// holds and who waits.
func TestFromNative1(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		prefix := d.NewPrefix(t)
		old := newNative1(t, d, prefix)
		old.migrate()
		held, err := old.acquire("a")
		if err != nil || held.Status != sqlconn.StatusGranted {
			t.Fatalf("acquire by native 1: got %+v, %v, want it granted", held, err)
		}
		if got, err := old.acquire("b"); err != nil || got.Status != sqlconn.StatusWaiting {
			t.Fatalf("acquire by native 1 of a held key: got %+v, %v, want it waiting", got, err)
		}
		_, err = New(t.Context(), d.Database, WithPrefix(prefix))
		wantSchemaError(t, "New before the migration", err)
		for range 2 {
			if err := Migrate(t.Context(), d.Database, WithPrefix(prefix)); err != nil {
				t.Fatal(err)
			}
		}
		_, err = old.acquire("a")
		wantSchemaError(t, "acquire by native 1 after the migration", err)
		c := join(t, newStore(t, d, WithPrefix(prefix)))
		info, err := c.Session.Inspect(t.Context(), "key")
		if err != nil || !info.Held || info.Token != held.Token || info.Mode != store.Exclusive || info.Waiters != 1 {
			t.Errorf("Inspect after the migration: got %+v, %v, want it held with token %d, and one waiter", info, err, held.Token)
		}
		last := c.Acquire(reader("key", "c"))
		if last.Status != store.Waiting || last.Rank != 1 {
			t.Errorf("Acquire by a reader: got %+v, want it behind the waiter of native 1", last)
		}
		if !c.Release("key", "a") || !c.Release("key", "b") {
			t.Error("Release of what owners of native 1 had: got WasHeld false, want true")
		}
		if got := c.Hold(reader("key", "c")); got.Fence <= held.Token {
			t.Errorf("Acquire by a reader: got %+v, want a fence above %d", got, held.Token)
		}
	})
}

// TestNative1Again: somebody's old program may migrate when it starts, and so put back the old
// routines. They leave alone what is shared, and leave behind what was.
func TestNative1Again(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d)
		c, prefix := join(t, st), st.settings.prefix
		old := newNative1(t, d, prefix)
		fence := c.Hold(reader("key", "a")).Fence
		c.Hold(reader("key", "b"))

		old.migrate()
		got := c.Session.Acquire(t.Context(), []store.AcquireRequest{reader("key", "c")})[0]
		wantSchemaError(t, "Acquire under routines of native 1", got.Err)
		if got, err := old.acquire("writer"); err != nil || got.Status != sqlconn.StatusWaiting {
			t.Errorf("acquire by native 1 of what readers hold: got %+v, %v, want it waiting", got, err)
		}
		d.Run(t, "UPDATE "+prefix+"lock SET held_until = '2020-01-01'") // the readers' time is over
		if got, err := old.acquire("writer"); err != nil || got.Status != sqlconn.StatusGranted {
			t.Fatalf("acquire by native 1 of what readers held: got %+v, %v, want it granted", got, err)
		}

		if err := Migrate(t.Context(), d.Database, WithPrefix(prefix)); err != nil {
			t.Fatal(err)
		}
		if got := c.Acquire(reader("key", "c")); got.Status != store.Waiting {
			t.Errorf("Acquire by a reader of what a writer holds: got %+v, want Waiting", got)
		}
		c.Release("key", "writer")
		if got := c.Hold(reader("key", "c")); got.Fence <= fence {
			t.Errorf("Acquire by a reader after that writer: got %+v, want a fence above %d, that of the readers before", got, fence)
		}
		info, err := c.Session.Inspect(t.Context(), "key")
		if err != nil || len(info.Holders) != 1 {
			t.Errorf("Inspect: got %+v, %v, want the one reader that has come since", info, err)
		}
	})
}
