// SPDX-License-Identifier: Apache-2.0

package springsql

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

// TestCheck: a store of its own says what Java's table is, on the servers that package sqlstore tests.
func TestCheck(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d, WithRegion("orders"))
		found := sqltest.Check(t, st)
		want := map[string]string{
			sqlconn.KindPostgres: "server durability connections isolation clock schema",
			sqlconn.KindMySQL:    "server durability connections clock schema",
		}
		if got := strings.Join(found.Order, " "); got != want[d.Kind] {
			t.Errorf("checks: got %s, want %s", got, want[d.Kind])
		}
		found.Want(t, "clock", store.VerdictOK, "at most 1s", "")
		found.Want(t, "schema", store.VerdictOK, `7.x, used in region "orders"`, "")
		d.Run(t, "INSERT INTO "+st.settings.prefix+`LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER)
			VALUES ('key', 'orders', 'a', CURRENT_TIMESTAMP, '2020-01-01')`)
		sqltest.Check(t, st).Want(t, "schema", store.VerdictFail, "before 7.0 writes to the table", "one range")
		d.Run(t, "DELETE FROM "+st.settings.prefix+"LOCK")
		d.Run(t, "ALTER TABLE "+st.settings.prefix+"LOCK DROP COLUMN EXPIRED_AFTER")
		sqltest.Check(t, st).Want(t, "schema", store.VerdictFail, "it is a table of Spring Integration 6.x", "one range")
		d.Run(t, "DROP TABLE "+st.settings.prefix+"LOCK")
		sqltest.Check(t, st).Want(t, "schema", store.VerdictFail, "there is none", "Migrate")
	})
	if got := fmt.Sprint(sqltest.Check(t, new(Store)).Order); got != "[server]" {
		t.Errorf("checks of a store that is only declared: got %s, want [server]", got)
	}
}

// TestCheckOfSpring6: only the programs know when a lock ends.
func TestCheckOfSpring6(t *testing.T) {
	t.Parallel()
	st := newTables(t, sqltest.OnPostgres(t), WithSpringVersion(Spring6), WithRepositoryTTL(17*time.Second))
	sqltest.Check(t, st).Want(t, "schema", store.VerdictNote, "the store's is 17s", "timeToLive")
}

// TestCheckOfAClockThatIsBehind: each client's own decides, so they must not differ.
func TestCheckOfAClockThatIsBehind(t *testing.T) {
	t.Parallel()
	d := sqltest.AtURL(t, kit.Require(t, "ASYNCLOCK_MYSQL_URL")+fmt.Sprint("?timestamp=", time.Now().Unix()-100))
	sqltest.Check(t, newTables(t, d)).Want(t, "clock", store.VerdictWarn, "behind this machine's; clients whose clocks differ", "NTP")
	d = sqltest.AtURL(t, kit.Require(t, "ASYNCLOCK_MYSQL_URL")+fmt.Sprint("?timestamp=", time.Now().Unix()+1000))
	sqltest.Check(t, newTables(t, d)).Want(t, "clock", store.VerdictWarn, "ahead of this machine's", "NTP")
	sqltest.Check(t, newTables(t, d, WithSkewWarning(2000*time.Second))).Want(t, "clock", store.VerdictOK, "at most 33m20s", "")
}
