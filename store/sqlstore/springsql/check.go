// SPDX-License-Identifier: Apache-2.0

package springsql

import (
	"cmp"
	"context"
	"fmt"

	"github.com/asynclock/asynclock-go/internal/storecheck"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

var _ store.CheckedStore = (*Store)(nil)

// Check examines the server and Java's table, as [store.CheckedStore] says. It needs no right that [New] doesn't need.
func (st *Store) Check(ctx context.Context, report func(store.Finding)) {
	st.conn.Check(ctx, report, errZero, storecheck.Probe{Check: "schema", Find: st.checkSchema})
}

// clock: each client, in Go and in Java, compares the times in the table with its own clock.
func (s *settings) clock() sqlconn.Clock {
	return sqlconn.Clock{
		Bound: cmp.Or(s.skew, DefaultSkew), Beyond: store.VerdictWarn,
		Means: "clients whose clocks differ take each other's locks before their time",
	}
}

// checkSchema looks at the table once more, because others may have changed it or written to it since [New].
func (st *Store) checkSchema(ctx context.Context) (store.Finding, error) {
	t, err := st.look(ctx)
	if err == nil {
		_, err = st.fit(t)
	}
	if err == nil {
		err = st.checkRows(ctx, t)
	}
	if err == nil {
		err = st.conn.Read(ctx)
	}
	if err != nil {
		return st.conn.Unfit(err, "let programs of one range of Spring Integration's releases use the table, and run Migrate")
	}
	s := st.settings
	found := store.Finding{Fact: fmt.Sprintf("%s is a table of %v, used in region %q", t.name, s.version, s.region)}
	if s.version == Spring6 {
		found.Verdict = store.VerdictNote
		found.Fact += fmt.Sprintf("; each reader adds its own TTL to a lock's last renewal, and the store's is %v", s.ttl)
		found.Fix = "see that it is the timeToLive of each repository in Java; one with a shorter TTL steals live locks"
	}
	return found, nil
}
