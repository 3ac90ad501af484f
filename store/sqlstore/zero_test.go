// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"testing"

	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

func TestAStoreThatIsOnlyDeclaredIsRefused(t *testing.T) {
	t.Parallel()
	sqltest.Zero(t, new(Store))
}
