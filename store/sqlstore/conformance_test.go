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
