// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"testing"

	"github.com/asynclock/asynclock-go/store/storetest"
)

func TestAStoreThatIsOnlyDeclaredIsRefused(t *testing.T) {
	t.Parallel()
	storetest.Zero(t, new(Store))
}
