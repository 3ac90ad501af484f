// SPDX-License-Identifier: Apache-2.0

package fencepgx

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv("ASYNCLOCK_POSTGRES_URL") == "" { // examples can't skip themselves
		if err := flag.Set("test.skip", "^Example"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}
