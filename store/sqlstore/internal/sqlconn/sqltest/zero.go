// SPDX-License-Identifier: Apache-2.0

package sqltest

import (
	"errors"
	"testing"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/storetest"
)

// Zero checks a store that is only declared, as [storetest.Zero] does, and that it guards nothing.
func Zero(t testing.TB, zero Store) {
	t.Helper()
	storetest.Zero(t, zero)
	for call, err := range map[string]error{
		"Guard": zero.Guard(t.Context(), nil, "key", 1), "GuardPgx": zero.GuardPgx(t.Context(), nil, "key", 1),
	} {
		if !errors.Is(err, store.ErrInvalidOption) {
			t.Errorf("%s of a zero store: got %v, want ErrInvalidOption", call, err)
		}
	}
}
