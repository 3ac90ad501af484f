// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"slices"
	"testing"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
	"github.com/asynclock/asynclock-go/store/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	silent := storetest.WithoutMessages()
	for _, on := range []struct {
		name    string
		open    func(testing.TB) sqltest.Database
		options []Option
		suite   []storetest.Option
	}{
		{"postgres", sqltest.OnPostgres, nil, nil},
		{"pool of pgx", onPool, nil, nil},
		{"postgres, polling", sqltest.OnPostgres, []Option{WithoutNotifications()}, []storetest.Option{silent}},
		{"mysql", sqltest.OnMySQL, nil, []storetest.Option{silent}},
	} {
		t.Run(on.name, func(t *testing.T) {
			t.Parallel()
			d := on.open(t)
			options := slices.Concat(on.options, []Option{WithPrefix(d.NewPrefix(t)), WithoutLogger()})
			if err := Migrate(t.Context(), d.Database, options...); err != nil {
				t.Fatal(err)
			}
			storetest.Run(t, func(t *testing.T) store.Store {
				st, err := New(t.Context(), d.Database, options...)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(st.Close)
				return patient{st}
			}, on.suite...)
		})
	}
}

// A patient store's sessions know from the start whether notifications come through.
type patient struct{ *Store }

func (p patient) Open(id string, events func(store.Event)) (store.Session, error) {
	joined, err := p.Store.Open(id, events)
	if err == nil && joined.(*session).inbox != nil {
		<-joined.(*session).inbox.Settled() // 7 s at most
	}
	return joined, err
}

func onPool(t testing.TB) sqltest.Database {
	t.Helper()
	d, _ := sqltest.OnPool(t)
	return d
}
