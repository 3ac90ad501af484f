// SPDX-License-Identifier: Apache-2.0

package sqltest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

// A poolCase is a pool of the application, how many rows of its locks somebody else has locked, and their TTL.
type poolCase struct {
	size, locked int
	ttl          time.Duration
}

// poolCases are all of the table in docs/stores/sql.md, of which a gate by day has the worst.
func poolCases() (cases []poolCase) {
	if os.Getenv("ASYNCLOCK_NIGHTLY") == "" {
		return []poolCase{{1, 6, 5 * time.Second}}
	}
	for _, size := range []int{1, 2, 5, 20} {
		for _, locked := range []int{0, 1, 6} {
			cases = append(cases, poolCase{size, locked, 5 * time.Second})
		}
	}
	return cases
}

const (
	// poolFree is how many leases have rows that nobody has locked.
	poolFree = 5
	// poolWait is how much longer a statement of the application's may take beside locked rows.
	poolWait = 50 * time.Millisecond
	// poolNoise is what a machine may add to that, if it does nothing else, and if it is busy. It may add more to a few.
	poolNoise     = 50 * time.Millisecond
	poolNoiseBusy = 500 * time.Millisecond
	poolFew       = 4
)

// lockedRowsLeaveThePool is a test: rows that somebody's transaction has locked take no connection from
// the application, and no lease of a free row is lost. It prints the table in docs/stores/sql.md.
func (s Suite) lockedRowsLeaveThePool(t *testing.T) {
	for _, c := range poolCases() { // one after the other, because times are measured
		t.Run(fmt.Sprintf("pool of %d, %d locked", c.size, c.locked), func(t *testing.T) {
			for _, on := range []func(testing.TB) Database{OnPostgres, OnMySQL} {
				b := s.NewTables(t, on(t))
				t.Run(b.Kind, func(t *testing.T) {
					t.Parallel()
					b.testPool(t, c)
				})
			}
		})
	}
}

func (b Tables) testPool(t *testing.T, c poolCase) {
	t.Helper()
	url := kit.Require(t, map[string]string{sqlconn.KindPostgres: "ASYNCLOCK_POSTGRES_URL", sqlconn.KindMySQL: "ASYNCLOCK_MYSQL_URL"}[b.Kind])
	driver := map[string]string{sqlconn.KindPostgres: "pgx", sqlconn.KindMySQL: "mysql"}[b.Kind]
	app, other := OpenDB(t, driver, url), OpenDB(t, driver, url)
	for _, db := range []*sql.DB{app, other} {
		db.SetMaxOpenConns(c.size)
		db.SetMaxIdleConns(c.size)
	}
	d := Postgres(app)
	if b.Kind == sqlconn.KindMySQL {
		d = MySQL(app)
	}
	client, err := asynclock.New(b.open(t, d, b.Prefix), asynclock.WithTTL(c.ttl), asynclock.WithoutLogger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		_ = client.Close(ctx) // leases whose rows were locked have been lost
	})
	var free []*asynclock.Lease
	for i := range poolFree + c.locked {
		l, err := client.Lock(t.Context(), fmt.Sprint("key", i))
		if err != nil {
			t.Fatal(err)
		}
		if i < poolFree {
			free = append(free, l)
		} else {
			defer b.LockRow(t, b.KeyTables[0], l.Key()).Rollback() //nolint:errcheck // it ends anyway
		}
		time.Sleep(c.ttl / 15) // so that each is renewed by itself
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*c.ttl+time.Second) // in which leases without renewals end
	defer cancel()
	used := make(chan error, 1)
	go func() { used <- useOne(ctx, client) }() // ends soon after ctx
	alone := make(chan []time.Duration, 1)
	go func() { alone <- ask(ctx, t, other) }() // ends with ctx
	beside := ask(ctx, t, app)
	without, live := <-alone, 0
	for _, l := range free {
		if l.Unlock(context.WithoutCancel(ctx)) == nil {
			live++
		}
	}
	t.Logf("%s, pool of %d, %d locked: 99 of 100 statements %v (without us %v), the slowest %v (%v); %d of %d leases of free rows live",
		b.Kind, c.size, c.locked, part(beside, 0.99), part(without, 0.99), part(beside, 1), part(without, 1), live, poolFree)
	if err := <-used; err != nil {
		t.Errorf("Lock of a key whose row is free: got %v, want no error", err)
	}
	if live != poolFree {
		t.Errorf("leases of free rows: %d live, want all %d", live, poolFree)
	}
	noise := poolNoise
	if os.Getenv("ASYNCLOCK_NIGHTLY") == "" {
		noise = poolNoiseBusy // other tests run beside this one
	}
	got, most := beside[len(beside)-1-poolFew], without[len(without)-1-poolFew]+poolWait+noise
	if got > most {
		t.Errorf("statements of the application, except for the slowest %d: got %v, want %v at most", poolFew, got, most)
	}
}

// ask sends statements of the application's until ctx ends, and returns how long each took, in order.
func ask(ctx context.Context, t *testing.T, db *sql.DB) (took []time.Duration) {
	t.Helper()
	pause := time.NewTicker(5 * time.Millisecond)
	defer pause.Stop()
	for ctx.Err() == nil {
		began := time.Now()
		if _, err := db.ExecContext(context.WithoutCancel(ctx), "SELECT 1"); err != nil {
			t.Errorf("a statement of the application: got %v, want no error", err)
		}
		took = append(took, time.Since(began))
		<-pause.C
	}
	slices.Sort(took)
	return took
}

// part returns the time in which that part of the sorted times ended.
func part(took []time.Duration, p float64) time.Duration {
	return took[int(p*float64(len(took)-1))].Round(time.Millisecond / 10)
}

// useOne locks and unlocks a key that nobody else uses, again and again, and returns the first error.
func useOne(ctx context.Context, client *asynclock.Client) error {
	for ctx.Err() == nil {
		l, err := client.Lock(context.WithoutCancel(ctx), "another")
		if err != nil {
			return err
		}
		if err := l.Unlock(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond) // it is to be used, not measured
	}
	return nil
}
