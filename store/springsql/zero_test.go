// SPDX-License-Identifier: Apache-2.0

package springsql

import (
	"errors"
	"testing"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
)

func TestAStoreThatIsOnlyDeclaredIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := asynclock.New(new(Store)); !errors.Is(err, store.ErrInvalidOption) {
		t.Errorf("New: got %v, want ErrInvalidOption", err)
	}
	if err := new(Store).Guard(t.Context(), nil, "key", 1); !errors.Is(err, store.ErrInvalidOption) {
		t.Errorf("Guard: got %v, want ErrInvalidOption", err)
	}
	if err := new(Store).GuardPgx(t.Context(), nil, "key", 1); !errors.Is(err, store.ErrInvalidOption) {
		t.Errorf("GuardPgx: got %v, want ErrInvalidOption", err)
	}
	new(Store).Close()
}
