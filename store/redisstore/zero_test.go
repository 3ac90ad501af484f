// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"testing"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/storetest"
)

func TestAStoreThatIsOnlyDeclaredIsRefused(t *testing.T) {
	t.Parallel()
	storetest.Zero(t, new(Store))
}

func TestAStoreWithoutADriverIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := NewWith(nil); !errors.Is(err, store.ErrInvalidOption) {
		t.Errorf("got %v, want ErrInvalidOption", err)
	}
}
