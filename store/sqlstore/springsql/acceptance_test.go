// SPDX-License-Identifier: Apache-2.0

package springsql

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/internal/test/acceptance"
)

var stores = []acceptance.Store{
	{Name: "postgres", Offers: acceptance.AnyStore, Prepare: suite.Prepare("ASYNCLOCK_POSTGRES_URL")},
	{Name: "mysql", Offers: acceptance.AnyStore, Prepare: suite.Prepare("ASYNCLOCK_MYSQL_URL")},
}

func TestStories(t *testing.T) { acceptance.Run(t, stores) }

func TestWhatIsClosedHasNoTimer(t *testing.T) { acceptance.WantNoTimers(t, stores) }

func TestMain(m *testing.M) {
	if os.Getenv("ASYNCLOCK_POSTGRES_URL") == "" { // examples can't skip themselves
		if err := flag.Set("test.skip", "^Example"); err != nil {
			panic(err)
		}
	}
	// pgx says goodbye to a server that is gone for up to 15 s.
	acceptance.Main(m, suite.OpenForWorker, goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgconn.(*PgConn).asyncClose.func1"))
}
