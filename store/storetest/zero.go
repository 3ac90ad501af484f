// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"testing"

	"github.com/asynclock/asynclock-go/store"
)

// Zero checks a store that is only declared: new(Store), which no function of its package has made.
// Open has to fail with ErrInvalidOption, and so does a client's New. If the store has a method
// Close without arguments and results, it has to return.
func Zero(t testing.TB, zero store.Store) {
	t.Helper()
	if _, err := zero.Open("client", func(store.Event) {}); !errors.Is(err, store.ErrInvalidOption) {
		t.Errorf("Open of a zero store: got %v, want ErrInvalidOption", err)
	}
	if closer, ok := zero.(interface{ Close() }); ok {
		closer.Close()
	}
}
