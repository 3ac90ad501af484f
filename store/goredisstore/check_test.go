// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

// This driver serves the checks of a store, too.
func TestCheck(t *testing.T) {
	t.Parallel()
	for _, variable := range variables {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			st := newStore(t, clientAt(t, variable), redisstore.WithPrefix("test-"+uuid.NewString()))
			found := make(map[string]store.Finding)
			st.Check(t.Context(), func(f store.Finding) { found[f.Check] = f })
			for _, check := range []string{"server", "eviction", "memory", "clock"} {
				if f := found[check]; f.Verdict != store.VerdictOK || f.Fact == "" {
					t.Errorf("%s: got %+v, want it ok", check, f)
				}
			}
			if f, ok := found["cluster"]; ok != (variable == variables[2]) || ok && (f.Verdict != store.VerdictOK || !strings.Contains(f.Fact, "and 2 more: ")) {
				t.Errorf("cluster: got %+v, want three nodes, if it is one", f)
			}
		})
	}
}
