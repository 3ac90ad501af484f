// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"time"

	"github.com/asynclock/asynclock-go/internal/storecheck"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

var _ store.CheckedStore = (*Store)(nil)

// Check examines the server and the schema, as [store.CheckedStore] says. It needs no right that locks don't need.
func (st *Store) Check(ctx context.Context, report func(store.Finding)) {
	st.conn.Check(ctx, report, errZero,
		storecheck.Probe{Check: "schema", Find: st.checkSchema},
		storecheck.Probe{Check: "notifications", Find: func(context.Context) (store.Finding, error) { return st.notifications(), nil }})
}

// clock: no client's clock matters.
var clock = sqlconn.Clock{Bound: time.Second, Beyond: store.VerdictNote, Means: "only the server's decides when a lock ends"}

// checkSchema asks whether the tables and routines are still those of this release.
func (st *Store) checkSchema(ctx context.Context) (store.Finding, error) {
	if err := st.conn.Read(ctx); err != nil {
		return st.conn.Unfit(err, "run Migrate of the newest release that is in use, and update the programs of others")
	}
	return store.Finding{Fact: "the tables and routines " + st.settings.prefix + "* are of schema " + schema}, nil
}

// notifications says how waiters learn that it is their turn.
func (st *Store) notifications() store.Finding {
	polls := store.Finding{Verdict: store.VerdictNote}
	switch {
	case st.connect != nil:
		return store.Finding{Fact: "clients are notified, each on a connection of its own beside the pool"}
	case st.conn.Kind() != sqlconn.KindPostgres:
		polls.Fact = "waiters poll, because this kind of database notifies nobody"
	case !st.settings.listen:
		polls.Fact = "waiters poll, because of WithoutNotifications"
		polls.Fix = "leave that out, unless a pooler shares connections between transactions"
	default:
		polls.Fact = "waiters poll, because the pool's driver is not pgx"
		polls.Fix = "use pgx, by PostgresPool or by its package stdlib"
	}
	return polls
}
