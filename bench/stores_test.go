// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"cirello.io/pglock"
	_ "github.com/go-sql-driver/mysql"
	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore"
	"github.com/asynclock/asynclock-go/store/sqlstore"
	"github.com/asynclock/asynclock-go/store/sqlstore/springsql"
	"github.com/asynclock/asynclock-go/store/zkstore"
)

// What a lock costs in a database and in ZooKeeper, beside Redis and beside the least that these
// can be asked for, on the servers that the environment names:
//
//	cd .. && go run ./internal/test/testenv -- sh -c 'cd bench && go test -run "^$" -bench "SQL|ZooKeeper" .'

// sub is a benchmark that may end by check.
func sub(b *testing.B, name string, do func(b *testing.B)) {
	b.Helper()
	b.Run(name, func(b *testing.B) {
		if err := catch(func() { do(b) }); err != nil {
			b.Fatal(err)
		}
	})
}

// server names a server, or ends the benchmark where there is none.
func server(b *testing.B, variable string) string {
	b.Helper()
	value := os.Getenv(variable)
	if value == "" {
		b.Skip(variable + " is not set")
	}
	return value
}

func openSQL(b *testing.B, driver, variable string) *sql.DB {
	b.Helper()
	db := must(sql.Open(driver, server(b, variable)))
	db.SetMaxIdleConns(16)
	b.Cleanup(func() { _ = db.Close() })
	return db
}

func postgres(b *testing.B) *sql.DB {
	b.Helper()
	return openSQL(b, "pgx", "ASYNCLOCK_POSTGRES_URL")
}

func mariadb(b *testing.B) *sql.DB {
	b.Helper()
	return openSQL(b, "mysql", "ASYNCLOCK_MYSQL_URL")
}

type openedStore interface {
	store.Store
	Close()
}

// A benchStore is a store to compare.
type benchStore struct {
	name string
	open func(b *testing.B) openedStore
}

var (
	inRedis = benchStore{"redis", func(b *testing.B) openedStore {
		b.Helper()
		option := must(rueidis.ParseURL(server(b, "ASYNCLOCK_REDIS_URL")))
		return must(redisstore.Open(option, redisstore.WithPrefix("bench")))
	}}
	inSQL = []benchStore{
		inRedis,
		{"postgres", func(b *testing.B) openedStore { b.Helper(); return native(b, sqlstore.Postgres(postgres(b))) }},
		{"postgres-spring", func(b *testing.B) openedStore { b.Helper(); return spring(b, springsql.Postgres(postgres(b))) }},
		{"mariadb", func(b *testing.B) openedStore { b.Helper(); return native(b, sqlstore.MySQL(mariadb(b))) }},
		{"mariadb-spring", func(b *testing.B) openedStore { b.Helper(); return spring(b, springsql.MySQL(mariadb(b))) }},
	}
	inZooKeeper = []benchStore{inRedis, {"zkstore", func(b *testing.B) openedStore {
		b.Helper()
		return must(zkstore.Open(strings.Split(server(b, "ASYNCLOCK_ZOOKEEPER"), ","), zkstore.WithRoot("/bench")))
	}}}
)

func native(b *testing.B, d sqlstore.Database) openedStore {
	b.Helper()
	check(sqlstore.Migrate(b.Context(), d))
	return must(sqlstore.New(b.Context(), d))
}

func spring(b *testing.B, d springsql.Database) openedStore {
	b.Helper()
	prefix := springsql.WithPrefix("BENCH_")
	check(springsql.Migrate(b.Context(), d, prefix))
	return must(springsql.New(b.Context(), d, prefix))
}

func (s benchStore) store(b *testing.B) store.Store {
	b.Helper()
	store := s.open(b)
	b.Cleanup(store.Close)
	return store
}

func join(b *testing.B, store store.Store) *asynclock.Client {
	b.Helper()
	c := must(asynclock.New(store))
	b.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return c
}

func once(b *testing.B, c *asynclock.Client, key string) {
	b.Helper()
	lease, err := c.Lock(b.Context(), key)
	if err == nil {
		err = lease.Unlock(b.Context())
	}
	if err != nil {
		b.Error(err) // also of another goroutine
	}
}

// lockAndUnlock is one goroutine, a free key.
func (s benchStore) lockAndUnlock(b *testing.B) {
	b.Helper()
	c, key := join(b, s.store(b)), uuid.NewString()
	for b.Loop() {
		once(b, c, key)
	}
}

// crowd is many goroutines of one client, twice as many on two cores.
func (s benchStore) crowd(b *testing.B, goroutines int, key func() string) {
	b.Helper()
	c := join(b, s.store(b))
	b.SetParallelism(goroutines)
	b.RunParallel(func(pb *testing.PB) {
		own := key()
		for pb.Next() {
			once(b, c, own)
		}
	})
}

// BenchmarkZooKeeper measures zkstore beside redisstore, on a standalone or an ensemble.
//
// Each store does what a lock is for: a key that nobody else wants, keys that pass
// from client to client and from goroutine to goroutine, and keys that are held.
func BenchmarkZooKeeper(b *testing.B) {
	for _, s := range inZooKeeper {
		sub(b, s.name, func(b *testing.B) {
			hot := uuid.NewString()
			sub(b, "lock and unlock", s.lockAndUnlock)
			sub(b, "256 goroutines, distinct keys", func(b *testing.B) { s.crowd(b, 128, uuid.NewString) })
			sub(b, "handoff between clients", s.handOver)
			sub(b, "one hot key in a client", func(b *testing.B) { s.crowd(b, 32, func() string { return hot }) })
		})
	}
}

// handOver reports the time from Unlock in one client to the lease in another that
// is queued.
func (s benchStore) handOver(b *testing.B) {
	b.Helper()
	giver, taker, key := join(b, s.store(b)), join(b, s.store(b)), uuid.NewString()
	var times []float64 // µs
	for b.Loop() {
		lease := must(giver.Lock(b.Context(), key))
		pending := taker.LockChan(b.Context(), key)
		for must(giver.Inspect(b.Context(), key)).Waiters == 0 {
			continue
		}
		start := time.Now()
		go lease.Unlock(b.Context()) // ends with the release
		next, err := (<-pending).Lease()
		times = append(times, micros(time.Since(start)))
		check(err)
		check(next.Unlock(b.Context()))
	}
	for i, at := range quantiles(times, 0.5, 0.99) {
		b.ReportMetric(at, []string{"p50-µs", "p99-µs"}[i])
	}
}

// BenchmarkZooKeeperFloor does with the bare driver what any lock in ZooKeeper has to:
// create a node, look at all of them, and delete it.
func BenchmarkZooKeeperFloor(b *testing.B) {
	sub(b, "lock and unlock", func(b *testing.B) {
		conn, events, err := zk.Connect(strings.Split(server(b, "ASYNCLOCK_ZOOKEEPER"), ","), 15*time.Second, zk.WithLogInfo(false))
		check(err)
		go func() { // ends with the connection
			for range events {
			}
		}()
		defer conn.Close()
		path := must(conn.Create("/bench-"+uuid.NewString(), nil, 0, zk.WorldACL(zk.PermAll)))
		for b.Loop() {
			node := must(conn.Create(path+"/lock-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll)))
			_, _, err := conn.Children(path)
			check(err)
			check(conn.Delete(node, -1))
		}
		check(conn.Delete(path, -1))
	})
}

// BenchmarkSQLLockUnlock: one goroutine, a free key.
func BenchmarkSQLLockUnlock(b *testing.B) {
	for _, s := range inSQL {
		sub(b, s.name, s.lockAndUnlock)
	}
	sub(b, "bare-pg_advisory_lock", func(b *testing.B) {
		conn := must(postgres(b).Conn(b.Context()))
		defer func() { _ = conn.Close() }()
		for b.Loop() {
			must(conn.ExecContext(b.Context(), "SELECT pg_advisory_lock(42)"))
			must(conn.ExecContext(b.Context(), "SELECT pg_advisory_unlock(42)"))
		}
	})
	sub(b, "pglock", func(b *testing.B) {
		locks := newPglock(b)
		for b.Loop() {
			lock := must(locks.AcquireContext(b.Context(), "bench:one"))
			check(locks.ReleaseContext(b.Context(), lock))
		}
	})
	// The least that keeps a lock over a crash of the server: a row that comes and goes.
	sub(b, "bare-row", func(b *testing.B) {
		db := postgres(b)
		must(db.ExecContext(b.Context(), "CREATE TABLE IF NOT EXISTS bench_row (key TEXT PRIMARY KEY, until TIMESTAMPTZ)"))
		for b.Loop() {
			must(db.ExecContext(b.Context(), "INSERT INTO bench_row VALUES ($1, now()) ON CONFLICT DO NOTHING", "key"))
			must(db.ExecContext(b.Context(), "DELETE FROM bench_row WHERE key = $1", "key"))
		}
	})
}

// newPglock returns a client of cirello.io/pglock as it comes.
func newPglock(b *testing.B) *pglock.Client {
	b.Helper()
	locks := must(pglock.UnsafeNew(postgres(b), pglock.WithCustomTable("bench_pglock")))
	check(locks.TryCreateTable())
	return locks
}

// BenchmarkSQLHandoff: from the unlock by one client to the claim by another that
// waits.
func BenchmarkSQLHandoff(b *testing.B) {
	for _, s := range inSQL {
		sub(b, s.name, func(b *testing.B) {
			store := s.store(b)
			clients := [2]*asynclock.Client{join(b, store), join(b, store)}
			var leases [2]*asynclock.Lease
			handoffs(b, 0, func(i int) (err error) {
				leases[i], err = clients[i].Lock(b.Context(), "bench:handoff")
				return err
			}, func(i int) error { return leases[i].Unlock(b.Context()) })
		})
	}
}

// BenchmarkSQLHandoffElsewhere is BenchmarkSQLHandoff for the others. The unlock comes at
// any time while the waiter waits, since one of them asks at intervals: with -benchtime=10x
// it takes some minutes.
func BenchmarkSQLHandoffElsewhere(b *testing.B) {
	sub(b, "bare-pg_advisory_lock", func(b *testing.B) {
		db := postgres(b)
		conns := [2]*sql.Conn{must(db.Conn(b.Context())), must(db.Conn(b.Context()))}
		b.Cleanup(func() { _, _ = conns[0].Close(), conns[1].Close() })
		do := func(what string) func(i int) error {
			return func(i int) error {
				_, err := conns[i].ExecContext(b.Context(), what)
				return err
			}
		}
		handoffs(b, 100*time.Millisecond, do("SELECT pg_advisory_lock(43)"), do("SELECT pg_advisory_unlock(43)"))
	})
	sub(b, "pglock", func(b *testing.B) {
		clients := [2]*pglock.Client{newPglock(b), newPglock(b)}
		var held [2]*pglock.Lock
		handoffs(b, pglock.DefaultLeaseDuration, func(i int) (err error) {
			held[i], err = clients[i].AcquireContext(b.Context(), "bench:handoff")
			return err
		}, func(i int) error { return clients[i].ReleaseContext(b.Context(), held[i]) })
	})
}

// handoffs measures from the unlock by one of two to the lock by the other, who has had time to queue and
// then waited for any time up to so long.
func handoffs(b *testing.B, waits time.Duration, lock, unlock func(i int) error) {
	b.Helper()
	check(lock(0))
	b.ResetTimer()
	b.StopTimer()
	for i := range b.N {
		wait := beside(func() { check(lock((i + 1) % 2)) }) // ends when the lock is handed over, below
		time.Sleep(20*time.Millisecond + rand.N(waits+1))
		b.StartTimer()
		check(unlock(i % 2))
		wait()
		b.StopTimer()
	}
	check(unlock(b.N % 2))
}

// BenchmarkSQLRenew: one call for 100 held keys.
func BenchmarkSQLRenew(b *testing.B) {
	for _, s := range inSQL {
		sub(b, s.name, func(b *testing.B) {
			own := session{must(s.store(b).Open("bench", func(store.Event) {}))}
			b.Cleanup(func() { _ = own.Close(context.Background()) })
			lanes := make(map[int][]store.RenewRequest)
			for _, key := range numbered("bench:renew:"+uuid.NewString(), 100) {
				r := own.take(b.Context(), key, store.Share{})
				b.Cleanup(func() { own.release(context.Background(), r) })
				lanes[own.Lane(key)] = append(lanes[own.Lane(key)], r)
			}
			for b.Loop() {
				for _, batch := range lanes {
					own.renew(b.Context(), batch)
				}
			}
		})
	}
}
