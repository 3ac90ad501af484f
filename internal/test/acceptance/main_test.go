// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
)

func TestMain(m *testing.M) { Main(m, OpenRedis, redistest.Leftover()...) }
