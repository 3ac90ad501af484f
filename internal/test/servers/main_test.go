// SPDX-License-Identifier: Apache-2.0

package servers_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, redistest.Leftover()...) }
