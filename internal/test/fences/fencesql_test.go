// SPDX-License-Identifier: Apache-2.0

package fences

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"

	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/fence/fencesql"
)

// inTurn are tokens that are shown one after the other.
var inTurn = []struct {
	key      string
	token    int64
	admitted bool
}{
	{"key", 5, true},
	{"key", 5, true}, // one lease writes often
	{"key", 7, true},
	{"key", 6, false},
	{"key", 5, false},
	{"key", 7, true},
	{"other\x00%\"'; -- 世界", 1, true},
	{"KEY", 1, true},
}

// wantVerdict checks what a fence said of a token of inTurn.
func wantVerdict(t *testing.T, token int64, admitted bool, err error) {
	t.Helper()
	var stale *fence.StaleError
	switch {
	case admitted && err != nil:
		t.Errorf("token %d: got %v, want no error", token, err)
	case !admitted && (!errors.As(err, &stale) || stale.Token != token || stale.Newest != 7):
		t.Errorf("token %d: got %v, want ErrStale after 7", token, err)
	}
}

func TestSQLRefusesSmallerTokens(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		for _, step := range inTurn {
			tx := d.begin(t, sql.LevelDefault)
			s, err := fence.NewStamp(step.key, step.token)
			if err != nil {
				t.Fatal(err)
			}
			wantVerdict(t, step.token, step.admitted, d.fences.Guard(t.Context(), tx, s))
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A token belongs to its transaction: what was rolled back was not shown.
func TestSQLForgetsWhatWasRolledBack(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		for _, token := range []int64{9, 5} {
			tx := d.begin(t, sql.LevelDefault)
			if err := d.fences.Guard(t.Context(), tx, stamp(t, token)); err != nil {
				t.Errorf("token %d: got %v, want no error", token, err)
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Fences of two resources have nothing to do with each other. Two Fences of one resource are one.
func TestSQLKeepsResourcesApart(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		named := func(resource string) *fencesql.Fence {
			f, err := fencesql.New(d.Dialect, fencesql.WithTable(d.prefix+"fence"), fencesql.WithResource(resource))
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		for _, step := range []struct {
			fences   *fencesql.Fence
			token    int64
			admitted bool
		}{{d.fences, 7, true}, {named("stock"), 5, true}, {named("stock"), 4, false}, {named("st%ock"), 4, true}, {named(""), 6, false}} {
			tx := d.begin(t, sql.LevelDefault)
			err := step.fences.Guard(t.Context(), tx, stamp(t, step.token))
			if (err == nil) != step.admitted || !step.admitted && !errors.Is(err, fence.ErrStale) {
				t.Errorf("token %d: got %v, want it let in: %t", step.token, err, step.admitted)
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A transaction that began before the next holder's commit is refused all the same, or has to be
// repeated: what it sees of the fence is no snapshot.
func TestSQLSeesBehindSnapshots(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		for _, level := range d.levels {
			t.Run(level.String(), func(t *testing.T) {
				d.run(t, "DELETE FROM "+d.prefix+"fence")
				d.commit(t, 4)
				old := d.begin(t, level)
				var token int64
				if err := old.QueryRowContext(t.Context(), "SELECT token FROM "+d.prefix+"fence").Scan(&token); err != nil || token != 4 {
					t.Fatalf("got %d, %v, want 4", token, err)
				}
				if level == sql.LevelSerializable && d.driver == "mysql" {
					// There a read locks what it reads, so the next holder could not commit.
					if err := old.Rollback(); err != nil {
						t.Fatal(err)
					}
					old = d.begin(t, level)
				}
				d.commit(t, 7)
				err := d.fences.Guard(t.Context(), old, stamp(t, 5))
				if !errors.Is(err, fence.ErrStale) && !mayBeRepeated(err) {
					t.Errorf("got %v, want ErrStale, or that it is to be repeated", err)
				}
				if level == sql.LevelReadCommitted && !errors.Is(err, fence.ErrStale) {
					t.Errorf("got %v, want ErrStale", err)
				}
			})
		}
	})
}

// commit is a whole transaction of a holder.
func (d database) commit(t *testing.T, token int64) {
	t.Helper()
	tx := d.begin(t, sql.LevelDefault)
	if err := d.fences.Guard(t.Context(), tx, stamp(t, token)); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// mayBeRepeated reports whether a database wants a transaction repeated.
func mayBeRepeated(err error) bool {
	var postgres *pgconn.PgError
	var maria *mysql.MySQLError
	var lite *sqlite.Error
	switch {
	case errors.As(err, &postgres):
		return postgres.Code == "40001" || postgres.Code == "40P01"
	case errors.As(err, &maria):
		return maria.Number == 1213 || maria.Number == 1020
	case errors.As(err, &lite):
		return lite.Code()&0xff == 5 // SQLITE_BUSY
	}
	return false
}

// The next holder waits for the earlier one's transaction, and writes behind it.
func TestSQLWaitsForTheHolderBefore(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		if d.waits == "" {
			d.waitsToWrite(t)
			return
		}
		old, next := d.begin(t, sql.LevelReadCommitted), d.begin(t, sql.LevelReadCommitted)
		if err := d.fences.Guard(t.Context(), old, stamp(t, 5)); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- d.fences.Guard(context.Background(), next, stamp(t, 7)) }() // ends when old does
		look := time.NewTicker(150 * time.Millisecond)                                  // InnoDB shows what it knew, if asked more often
		defer look.Stop()
		limit := time.After(patience)
		for n := 0; n == 0; {
			select {
			case <-limit:
				t.Fatal("the later holder neither waits nor returns")
			case err := <-done:
				t.Fatalf("the later holder does not wait: got %v", err)
			case <-look.C:
			}
			if err := d.QueryRowContext(t.Context(), d.waits, d.prefix+"fence").Scan(&n); err != nil {
				t.Fatal(err)
			}
		}
		if err := old.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("got %v, want no error", err)
		}
	})
}

// waitsToWrite: in SQLite the whole database has one writer.
func (d database) waitsToWrite(t *testing.T) {
	t.Helper()
	old := d.begin(t, sql.LevelDefault)
	if err := d.fences.Guard(t.Context(), old, stamp(t, 5)); err != nil {
		t.Fatal(err)
	}
	hasty, err := sql.Open(d.driver, "file:"+fileOf(t, d)+"?_pragma=busy_timeout(0)")
	if err != nil {
		t.Fatal(err)
	}
	defer hasty.Close()
	next, err := hasty.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = next.Rollback() }()
	if err := d.fences.Guard(t.Context(), next, stamp(t, 7)); !mayBeRepeated(err) {
		t.Errorf("got %v, want SQLITE_BUSY", err)
	}
}

func fileOf(t *testing.T, d database) (name string) {
	t.Helper()
	var seq int
	var what string
	if err := d.QueryRowContext(t.Context(), "PRAGMA database_list").Scan(&seq, &what, &name); err != nil {
		t.Fatal(err)
	}
	return name
}

// Writers of many leases at once, at each level: what is committed under the fence never goes back.
func TestSQLKeepsWritersInOrder(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		for _, level := range d.levels {
			t.Run(level.String(), func(t *testing.T) {
				d.run(t, "DELETE FROM "+d.prefix+"fence")
				d.run(t, "DELETE FROM "+d.prefix+"log")
				var writers sync.WaitGroup
				for writer := range 4 {
					writers.Go(func() {
						for n := range 10 {
							// Some come late, in every pair of two writers.
							d.logToken(t, level, int64(10*n+1+rand.IntN(15)+writer))
						}
					})
				}
				writers.Wait()
				d.wantRisingLog(t)
			})
		}
	})
}

// logToken writes a token to the log, unless it is refused. It reads first, so that there is a
// snapshot.
func (d database) logToken(t *testing.T, level sql.IsolationLevel, token int64) {
	for try := 0; ; try++ {
		err := d.tryToLog(t, level, token)
		switch {
		case err == nil || errors.Is(err, fence.ErrStale):
			return
		case !mayBeRepeated(err) || try == 1000:
			t.Errorf("token %d at %v, try %d: %v", token, level, try, err)
			return
		}
	}
}

func (d database) tryToLog(t *testing.T, level sql.IsolationLevel, token int64) error {
	ctx := t.Context()
	tx, err := d.BeginTx(ctx, &sql.TxOptions{Isolation: level})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	var n int
	if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+d.prefix+"data").Scan(&n); err != nil {
		return err
	}
	if err := d.fences.Guard(ctx, tx, stamp(t, token)); err != nil {
		return err
	}
	insert := "INSERT INTO " + d.prefix + "log (token) VALUES (" + d.mark + ")"
	if _, err := tx.ExecContext(ctx, insert, token); err != nil {
		return err
	}
	return tx.Commit()
}

func (d database) wantRisingLog(t *testing.T) {
	t.Helper()
	rows, err := d.QueryContext(t.Context(), "SELECT token FROM "+d.prefix+"log ORDER BY n")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var log []int64
	for rows.Next() {
		var token int64
		if err := rows.Scan(&token); err != nil {
			t.Fatal(err)
		}
		if n := len(log); n > 0 && token < log[n-1] {
			t.Errorf("%d was committed after %d", token, log[n-1])
		}
		log = append(log, token)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if len(log) < 2 {
		t.Errorf("got %v, want several writes", log)
	}
}

// Transactions that list their keys in opposite orders wait for each other, and never deadlock. Each round makes new rows,
// and changes them.
func TestSQLTransactionsOfSeveralKeysNeverDeadlock(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		guard := func(stamps fence.Stamps) error {
			tx, err := d.BeginTx(t.Context(), nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }() // does nothing after Commit
			if err := d.fences.GuardAll(t.Context(), tx, stamps); err != nil {
				return err
			}
			return tx.Commit()
		}
		for round := range 20 {
			var there fence.Stamps
			for n := range 3 {
				s, err := fence.NewStamp(fmt.Sprintf("account:%d:%d", round, n), 7)
				if err != nil {
					t.Fatal(err)
				}
				there = append(there, s)
			}
			back := slices.Clone(there)
			slices.Reverse(back)
			var callers sync.WaitGroup
			for range 2 {
				for _, stamps := range []fence.Stamps{there, back} {
					callers.Go(func() {
						if err := guard(stamps); err != nil {
							t.Errorf("%v: got %v, want no error", stamps.Keys(), err)
						}
					})
				}
			}
			callers.Wait()
		}
	})
}

// Each replica of a program may migrate when it starts.
func TestSQLMigratesTogether(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		d.run(t, "DROP TABLE "+d.prefix+"fence")
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if err := d.fences.Migrate(t.Context(), d.DB); err != nil {
					t.Errorf("Migrate: got %v, want no error", err)
				}
			})
		}
		all.Wait()
		d.commit(t, 5)
		if err := d.fences.Migrate(t.Context(), d.DB); err != nil {
			t.Fatal(err)
		}
		tx := d.begin(t, sql.LevelDefault)
		if err := d.fences.Guard(t.Context(), tx, stamp(t, 4)); !errors.Is(err, fence.ErrStale) {
			t.Errorf("after another Migrate: got %v, want ErrStale", err)
		}
	})
}
