// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
)

func TestMain(m *testing.M) {
	kit.InParallel(16)                          // they wait for servers
	if os.Getenv("ASYNCLOCK_REDIS_URL") == "" { // examples can't skip themselves
		if err := flag.Set("test.skip", "^Example"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m, redistest.Leftover()...)
}
