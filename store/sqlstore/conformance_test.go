// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"testing"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/storetest"
)

func TestConformanceOfSpring(t *testing.T) {
	for _, g := range []Generation{Spring7, Spring6} {
		t.Run(g.String(), func(t *testing.T) {
			d := Postgres(onPostgres(t))
			prefix := WithPrefix(newPrefix(t, d))
			if err := MigrateSpring(t.Context(), d, prefix, WithGeneration(g)); err != nil {
				t.Fatal(err)
			}
			storetest.Run(t, func(t *testing.T) asynclock.Store {
				st, err := NewSpring(t.Context(), d, prefix)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(st.Close)
				return st
			})
		})
	}
}

func TestConformance(t *testing.T) {
	d := Postgres(onPostgres(t))
	prefix := WithPrefix(newPrefix(t, d))
	if err := Migrate(t.Context(), d, prefix); err != nil {
		t.Fatal(err)
	}
	for _, on := range []struct {
		name     string
		database Database
		options  []Option
		suite    []storetest.Option
	}{
		{"on database/sql", d, []Option{prefix}, nil},
		{"on pgx", PostgresPool(onPool(t)), []Option{prefix}, nil},
		{"polling", d, []Option{prefix, WithPolling()}, []storetest.Option{storetest.WithoutMessages()}},
	} {
		t.Run(on.name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) asynclock.Store {
				st, err := New(t.Context(), on.database, on.options...)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(st.Close)
				return patient{st}
			}, on.suite...)
		})
	}
}

// A patient store's sessions know from the start whether messages come through.
type patient struct{ *Store }

func (p patient) Join(id string, events func(asynclock.Event)) (asynclock.Session, error) {
	joined, err := p.Store.Join(id, events)
	if err == nil && joined.(*session).inbox != nil {
		<-joined.(*session).inbox.Settled() // 7 s at most
	}
	return joined, err
}
