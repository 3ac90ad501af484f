// SPDX-License-Identifier: Apache-2.0

package springsql

import (
	"testing"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
	"github.com/asynclock/asynclock-go/store/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		for _, g := range []SpringVersion{Spring7, Spring6} {
			t.Run(g.String(), func(t *testing.T) {
				t.Parallel()
				prefix := WithPrefix(d.NewPrefix(t))
				if err := Migrate(t.Context(), d.Database, prefix, WithSpringVersion(g)); err != nil {
					t.Fatal(err)
				}
				storetest.Run(t, func(t *testing.T) store.Store {
					st, err := New(t.Context(), d.Database, prefix, WithoutLogger())
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
