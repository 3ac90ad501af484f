// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A wait that ends is a conflict, too, and not a failure.
func TestRequestOfABusyOrderIsAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks, err := asynclock.New(memstore.New())
		if err != nil {
			t.Fatal(err)
		}
		defer locks.Close(t.Context())
		other, err := locks.Lock(t.Context(), "order:42")
		if err != nil {
			t.Fatal(err)
		}
		defer other.Unlock(t.Context())

		began := time.Now()
		got := (&orders{locks, 2 * time.Second}).answer(t.Context())
		if took := time.Since(began); got != http.StatusConflict || took != 2*time.Second {
			t.Errorf("got %d after %v, want %d after 2s", got, took, http.StatusConflict)
		}
	})
}
