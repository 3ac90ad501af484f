// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"cirello.io/pglock"
	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore"
	"github.com/asynclock/asynclock-go/store/springsql"
	"github.com/asynclock/asynclock-go/store/sqlstore"
)

// What a lock costs in a database, beside Redis and beside the least that a database
// can be asked for:
//
//	cd .. && go run ./internal/test/testenv -- sh -c 'cd bench && go test -bench SQL .'

// openSQL opens a pool, or ends the benchmark where there is no server.
func openSQL(b *testing.B, driver, variable string) *sql.DB {
	b.Helper()
	url := os.Getenv(variable)
	if url == "" {
		b.Skip(variable + " is not set")
	}
	db, err := sql.Open(driver, url)
	if err != nil {
		b.Fatal(err)
	}
	db.SetMaxIdleConns(16)
	b.Cleanup(func() { _ = db.Close() })
	return db
}

// sqlStores open the stores to compare.
var sqlStores = []struct {
	name string
	open func(b *testing.B) store.Store
}{
	{"redis", func(b *testing.B) store.Store {
		b.Helper()
		url := os.Getenv("ASYNCLOCK_REDIS_URL")
		if url == "" {
			b.Skip("ASYNCLOCK_REDIS_URL is not set")
		}
		option, err := rueidis.ParseURL(url)
		if err != nil {
			b.Fatal(err)
		}
		store, err := redisstore.Open(option)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(store.Close)
		return store
	}},
	{"postgres", func(b *testing.B) store.Store {
		b.Helper()
		return newNative(b, sqlstore.Postgres(openSQL(b, "pgx", "ASYNCLOCK_POSTGRES_URL")))
	}},
	{"postgres-spring", func(b *testing.B) store.Store {
		b.Helper()
		return newSpring(b, springsql.Postgres(openSQL(b, "pgx", "ASYNCLOCK_POSTGRES_URL")))
	}},
	{"mariadb", func(b *testing.B) store.Store {
		b.Helper()
		return newNative(b, sqlstore.MySQL(openSQL(b, "mysql", "ASYNCLOCK_MYSQL_URL")))
	}},
	{"mariadb-spring", func(b *testing.B) store.Store {
		b.Helper()
		return newSpring(b, springsql.MySQL(openSQL(b, "mysql", "ASYNCLOCK_MYSQL_URL")))
	}},
}

func newNative(b *testing.B, d sqlstore.Database) store.Store {
	b.Helper()
	if err := sqlstore.Migrate(b.Context(), d); err != nil {
		b.Fatal(err)
	}
	store, err := sqlstore.New(b.Context(), d)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(store.Close)
	return store
}

func newSpring(b *testing.B, d springsql.Database) store.Store {
	b.Helper()
	prefix := springsql.WithPrefix("BENCH_")
	if err := springsql.Migrate(b.Context(), d, prefix); err != nil {
		b.Fatal(err)
	}
	store, err := springsql.New(b.Context(), d, prefix)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(store.Close)
	return store
}

func newClient(b *testing.B, store store.Store) *asynclock.Client {
	b.Helper()
	locks, err := asynclock.New(store)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = locks.Close(context.Background()) })
	return locks
}

// newPglock returns a client of cirello.io/pglock as it comes.
func newPglock(b *testing.B) *pglock.Client {
	b.Helper()
	locks, err := pglock.UnsafeNew(openSQL(b, "pgx", "ASYNCLOCK_POSTGRES_URL"), pglock.WithCustomTable("bench_pglock"))
	if err != nil {
		b.Fatal(err)
	}
	if err := locks.TryCreateTable(); err != nil {
		b.Fatal(err)
	}
	return locks
}

// BenchmarkSQLLockUnlock: one goroutine, a free key.
func BenchmarkSQLLockUnlock(b *testing.B) {
	for _, s := range sqlStores {
		b.Run(s.name, func(b *testing.B) {
			locks := newClient(b, s.open(b))
			for b.Loop() {
				lease, err := locks.Lock(b.Context(), "bench:one")
				if err != nil {
					b.Fatal(err)
				}
				if err := lease.Unlock(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("bare-pg_advisory_lock", func(b *testing.B) {
		conn, err := openSQL(b, "pgx", "ASYNCLOCK_POSTGRES_URL").Conn(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = conn.Close() })
		for b.Loop() {
			for _, statement := range []string{"SELECT pg_advisory_lock($1)", "SELECT pg_advisory_unlock($1)"} {
				if _, err := conn.ExecContext(b.Context(), statement, 42); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("pglock", func(b *testing.B) {
		locks := newPglock(b)
		for b.Loop() {
			lock, err := locks.AcquireContext(b.Context(), "bench:one")
			if err != nil {
				b.Fatal(err)
			}
			if err := locks.ReleaseContext(b.Context(), lock); err != nil {
				b.Fatal(err)
			}
		}
	})
	// The least that keeps a lock over a crash of the server: a row that comes and goes.
	b.Run("bare-row", func(b *testing.B) {
		db := openSQL(b, "pgx", "ASYNCLOCK_POSTGRES_URL")
		if _, err := db.ExecContext(b.Context(), "CREATE TABLE IF NOT EXISTS bench_row (key TEXT PRIMARY KEY, until TIMESTAMPTZ)"); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			for _, statement := range []string{
				"INSERT INTO bench_row VALUES ($1, now()) ON CONFLICT DO NOTHING", "DELETE FROM bench_row WHERE key = $1",
			} {
				if _, err := db.ExecContext(b.Context(), statement, "key"); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// BenchmarkSQLHandoff: from the unlock by one client to the claim by another that
// waits.
func BenchmarkSQLHandoff(b *testing.B) {
	for _, s := range sqlStores {
		b.Run(s.name, func(b *testing.B) {
			store := s.open(b)
			one, other := newClient(b, store), newClient(b, store)
			holder, err := one.Lock(b.Context(), "bench:handoff")
			if err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			b.StopTimer()
			for range b.N {
				pending := other.LockChan(b.Context(), "bench:handoff")
				time.Sleep(20 * time.Millisecond) // in which it queues
				b.StartTimer()
				if err := holder.Unlock(b.Context()); err != nil {
					b.Fatal(err)
				}
				got := <-pending
				b.StopTimer()
				if holder, err = got.Lease(); err != nil {
					b.Fatal(err)
				}
				one, other = other, one
			}
			if err := holder.Unlock(b.Context()); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkSQLHandoffElsewhere is BenchmarkSQLHandoff for the others. The unlock comes at
// any time while the waiter waits, since one of them asks at intervals: with -benchtime=10x
// it takes some minutes.
func BenchmarkSQLHandoffElsewhere(b *testing.B) {
	b.Run("bare-pg_advisory_lock", func(b *testing.B) {
		db := openSQL(b, "pgx", "ASYNCLOCK_POSTGRES_URL")
		var conns [2]*sql.Conn
		for i := range conns {
			conn, err := db.Conn(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = conn.Close() })
			conns[i] = conn
		}
		sqlHandoffs(b, 100*time.Millisecond, func(i int) error {
			_, err := conns[i%2].ExecContext(b.Context(), "SELECT pg_advisory_lock(43)")
			return err
		}, func(i int) error {
			_, err := conns[i%2].ExecContext(b.Context(), "SELECT pg_advisory_unlock(43)")
			return err
		})
	})
	b.Run("pglock", func(b *testing.B) {
		clients := [2]*pglock.Client{newPglock(b), newPglock(b)}
		var held [2]*pglock.Lock
		sqlHandoffs(b, pglock.DefaultLeaseDuration, func(i int) (err error) {
			held[i%2], err = clients[i%2].AcquireContext(b.Context(), "bench:handoff")
			return err
		}, func(i int) error { return clients[i%2].ReleaseContext(b.Context(), held[i%2]) })
	})
}

// sqlHandoffs measures from the unlock by one to the lock by the next, who has waited for any
// time up to so long.
func sqlHandoffs(b *testing.B, waits time.Duration, lock, unlock func(i int) error) {
	b.Helper()
	if err := lock(0); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	b.StopTimer()
	for i := range b.N {
		locked := make(chan error, 1)
		go func() { locked <- lock(i + 1) }() // ends when the lock is handed over, below
		time.Sleep(20*time.Millisecond + rand.N(waits))
		b.StartTimer()
		if err := unlock(i); err != nil {
			b.Fatal(err)
		}
		err := <-locked
		b.StopTimer()
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := unlock(b.N); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkSQLRenew: one call for 100 held keys.
func BenchmarkSQLRenew(b *testing.B) {
	const keys = 100
	for _, s := range sqlStores {
		b.Run(s.name, func(b *testing.B) {
			session, err := s.open(b).Open("bench", func(store.Event) {})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = session.Close(context.Background()) })
			lanes := make(map[int][]store.RenewRequest)
			for i := range keys {
				key, owner := fmt.Sprintf("bench:renew:%d", i), fmt.Sprintf("owner-%d-%d", i, time.Now().UnixNano())
				reply := session.Acquire(b.Context(), []store.AcquireRequest{{Key: key, Owner: owner, TTL: time.Minute}})[0]
				if reply.Err != nil || reply.Status != store.Granted {
					b.Fatalf("acquire: got %+v, want a grant", reply)
				}
				lanes[session.Lane(key)] = append(lanes[session.Lane(key)], store.RenewRequest{Key: key, Owner: owner, TTL: time.Minute})
				b.Cleanup(func() {
					session.Release(context.Background(), []store.ReleaseRequest{{Key: key, Owner: owner}})
				})
			}
			for b.Loop() {
				for _, batch := range lanes {
					for _, reply := range session.Renew(b.Context(), batch) {
						if reply.Err != nil {
							b.Fatal(reply.Err)
						}
					}
				}
			}
		})
	}
}
