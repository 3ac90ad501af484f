// SPDX-License-Identifier: Apache-2.0

package sqltest

import (
	"context"
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

// A Store is one in a database.
type Store interface {
	store.Store
	Close()
	Guard(ctx context.Context, tx *sql.Tx, key string, token int64) error
	GuardPgx(ctx context.Context, tx pgx.Tx, key string, token int64) error
}

// A Suite is what every store in a database has to do. Run has its tests.
type Suite struct {
	Migrate func(ctx context.Context, d sqlconn.Database, prefix string) error
	Open    func(ctx context.Context, d sqlconn.Database, prefix string) (Store, error)
	// Join connects a client, and waits until it is known whether notifications reach it.
	Join func(t testing.TB, st Store) *Client
	// OpenPolling is Open for a store that has no connection beside the pool.
	OpenPolling func(ctx context.Context, d sqlconn.Database, prefix string) (Store, error)

	// Call calls a routine with items that the store itself would not send.
	Call func(ctx context.Context, st Store, routine string, items ...sqlconn.Item) ([]sqlconn.Answer, error)

	Rights Rights

	// KeyTables are the tables that have a row for each key, without the prefix. The first
	// says who holds what, and the last is locked first.
	KeyTables []string
	KeyColumn map[string]string       // of these tables, by the kind of database
	Key       func(key string) string // what is in that column
	// Making are the values of a row of a table for the key "b", after INSERT INTO and the
	// table's name.
	Making func(kind, table string) string
	// Unused are the columns and the values of old rows of the last of these tables. It has a
	// column last_use. The SQL name stands for the key.
	Unused func(kind, name string) (columns, values string)
	Held   string // what is true of a row that is held

	Gone, GoneOwner, GoneUntil string              // the table of withdrawn owners, and columns
	Owner                      func(string) string // what is in the column GoneOwner
	Sweep                      func() string       // a call of the routine that sweeps
	Routines                   string              // what the names of routines begin with, after the prefix
}

// Run runs the tests of a suite.
func Run(t *testing.T, s Suite) {
	t.Run("LockedRowsLeaveThePool", s.lockedRowsLeaveThePool) // which measures, so no other test runs meanwhile
	t.Parallel()
	for name, test := range map[string]func(*testing.T){
		"LockedRowHoldsUpNoBatch":                  s.lockedRowHoldsUpNoBatch,
		"BusyRowsAreWaitedForAlone":                s.busyRowsAreWaitedForAlone,
		"RowThatIsBeingMadeHoldsUpNoBatch":         s.rowThatIsBeingMadeHoldsUpNoBatch,
		"BatchSkipsLockedRows":                     s.batchSkipsLockedRows,
		"RenewalWaitsForItsRow":                    s.renewalWaitsForItsRow,
		"TryLockOfAHeldKeyLocksNoRow":              s.tryLockOfAHeldKeyLocksNoRow,
		"GuardRefusesStaleTokens":                  s.guardRefusesStaleTokens,
		"GivenUpCallEnds":                          s.givenUpCallEnds,
		"PatienceOfTheApplicationStays":            s.patienceOfTheApplicationStays,
		"ReleaseThatFailsHasReleasedNothing":       s.releaseThatFailsHasReleasedNothing,
		"WithoutAutocommit":                        s.withoutAutocommit,
		"SafeUpdates":                              s.safeUpdates,
		"ForcePassesOverTokens":                    s.forcePassesOverTokens,
		"ClientThatStopsBeforeItsCommitKeepsNoRow": s.clientThatStopsBeforeItsCommitKeepsNoRow,
		"TablesDoNotGrow":                          s.tablesDoNotGrow,
		"UncertainReleasesDoNotWaitForEachOther":   s.uncertainReleasesDoNotWaitForEachOther,
		"RightsSuffice":                            s.rightsSuffice,
		"ReadOnlyServerIsRefused":                  s.readOnlyServerIsRefused,
		"MigrateAgainReplacesNothing":              s.migrateAgainReplacesNothing,
		"ScriptsAreAlike":                          s.scriptsAreAlike,
		"ServersOfOtherSettings":                   s.serversOfOtherSettings,
		"NowhereIsSaid":                            s.nowhereIsSaid,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// Tables are those of one store of a test's own.
type Tables struct {
	Suite
	Database

	Prefix string
	Store  Store
}

// NewTables makes tables of a prefix of their own and opens a store of them.
func (s Suite) NewTables(t testing.TB, d Database) Tables {
	t.Helper()
	prefix := d.NewPrefix(t)
	if err := s.Migrate(t.Context(), d.Database, prefix); err != nil {
		t.Fatal(err)
	}
	return Tables{s, d, prefix, s.open(t, d, prefix)}
}

// open opens a store, which the end of the test closes.
func (s Suite) open(t testing.TB, d Database, prefix string) Store {
	t.Helper()
	st, err := s.Open(t.Context(), d.Database, prefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	return st
}

// on runs a test on tables in each kind of database, side by side.
func (s Suite) on(t *testing.T, test func(t *testing.T, tables Tables)) {
	t.Helper()
	OnEach(t, func(t *testing.T, d Database) { test(t, s.NewTables(t, d)) })
}

// join connects a client to the store.
func (b Tables) join(t testing.TB) *Client {
	t.Helper()
	return b.Join(t, b.Store)
}

// lock is the table that says who holds what.
func (b Tables) lock() string { return b.KeyTables[0] }

// LockRow keeps a key's row of one of the tables locked until the transaction that it
// returns ends. Nothing else is locked, as InnoDB would at REPEATABLE READ.
func (b Tables) LockRow(t *testing.T, table, key string) *sql.Tx {
	t.Helper()
	tx := b.Begin(t)
	var one int
	if err := tx.QueryRowContext(t.Context(), "SELECT 1 FROM "+b.Prefix+table+" WHERE "+b.where(key)+" FOR UPDATE").Scan(&one); err != nil {
		t.Fatalf("row of %s in %s: %v", key, table, err)
	}
	return tx
}

// where is true of a key's row.
func (b Tables) where(key string) string { return b.KeyColumn[b.Kind] + " = '" + b.Key(key) + "'" }

// sweep does what one of many requests does besides.
func (b Tables) sweep(t *testing.T) {
	t.Helper()
	b.RunRoutine(t, b.Prefix+b.Sweep())
}
