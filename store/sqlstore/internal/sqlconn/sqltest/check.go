// SPDX-License-Identifier: Apache-2.0

package sqltest

import (
	"context"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/store"
)

// AtURL returns a pool for the server at a URL.
func AtURL(t testing.TB, url string) Database {
	t.Helper()
	if strings.HasPrefix(url, postgresScheme) {
		return Postgres(OpenDB(t, "pgx", url))
	}
	return MySQL(OpenDB(t, "mysql", url))
}

// Found is what a store has found out about its server.
type Found struct {
	Order []string // of the checks
	By    map[string]store.Finding
}

// Check has a store examine its server.
func Check(t testing.TB, st store.CheckedStore) Found {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	found := Found{By: make(map[string]store.Finding)}
	st.Check(ctx, func(f store.Finding) {
		found.Order = append(found.Order, f.Check)
		found.By[f.Check] = f
	})
	if err := ctx.Err(); err != nil {
		t.Errorf("Check: got %d findings in %v, want all", len(found.Order), Patience)
	}
	return found
}

// Want checks a finding. The fact and the fix are parts of what it says.
func (f Found) Want(t testing.TB, check string, verdict store.Verdict, fact, fix string) {
	t.Helper()
	got := f.By[check]
	if got.Verdict != verdict || !strings.Contains(got.Fact, fact) || !strings.Contains(got.Fix, fix) || got.Fact == "" {
		t.Errorf("%s: got %v, %q, fix %q, want %v, %q, fix %q", check, got.Verdict, got.Fact, got.Fix, verdict, fact, fix)
	}
}

// wantKnown: the rights that locks need are enough to find out everything.
func wantKnown(t testing.TB, st Store) {
	t.Helper()
	for check, f := range Check(t, st.(store.CheckedStore)).By {
		if f.Verdict == store.VerdictFail || strings.HasPrefix(f.Fact, "not known") {
			t.Errorf("%s with the rights of a user: got %+v, want it known", check, f)
		}
	}
}
