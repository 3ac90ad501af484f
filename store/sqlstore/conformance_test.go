// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"slices"
	"testing"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/storetest"
)

func TestConformanceOfSpring(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d Database) {
		for _, g := range []Generation{Spring7, Spring6} {
			t.Run(g.String(), func(t *testing.T) {
				t.Parallel()
				prefix := WithPrefix(newPrefix(t, d))
				if err := MigrateSpring(t.Context(), d, prefix, WithGeneration(g)); err != nil {
					t.Fatal(err)
				}
				storetest.Run(t, func(t *testing.T) store.Store {
					st, err := NewSpring(t.Context(), d, prefix)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(st.Close)
					return st
				})
			})
		}
	})
}

func TestConformance(t *testing.T) {
	t.Parallel()
	silent := storetest.WithoutMessages()
	for _, on := range []struct {
		name    string
		open    func(*testing.T) Database
		options []Option
		suite   []storetest.Option
	}{
		{"postgres", func(t *testing.T) Database { return onPostgres(t) }, nil, nil},
		{"pool of pgx", func(t *testing.T) Database { return PostgresPool(onPool(t)) }, nil, nil},
		{"postgres, polling", func(t *testing.T) Database { return onPostgres(t) }, []Option{WithPolling()}, []storetest.Option{silent}},
		{"mysql", func(t *testing.T) Database { return onMySQL(t) }, nil, []storetest.Option{silent}},
	} {
		t.Run(on.name, func(t *testing.T) {
			t.Parallel()
			d := on.open(t)
			options := slices.Concat(on.options, []Option{WithPrefix(newPrefix(t, d))})
			if err := Migrate(t.Context(), d, options...); err != nil {
				t.Fatal(err)
			}
			storetest.Run(t, func(t *testing.T) store.Store {
				st, err := New(t.Context(), d, options...)
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

func (p patient) Open(id string, events func(store.Event)) (store.Session, error) {
	joined, err := p.Store.Open(id, events)
	if err == nil && joined.(*session).inbox != nil {
		<-joined.(*session).inbox.Settled() // 7 s at most
	}
	return joined, err
}
