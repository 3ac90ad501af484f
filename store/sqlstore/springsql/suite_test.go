// SPDX-License-Identifier: Apache-2.0

package springsql

import (
	"testing"

	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

func TestSuite(t *testing.T) { sqltest.Run(t, suite) }
