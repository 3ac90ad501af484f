// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

// onKilled runs a test on a server of each kind that it may kill.
func onKilled(t *testing.T, test func(t *testing.T, s *sqltest.Server, d sqltest.Database)) {
	t.Helper()
	for _, kind := range servers.Databases {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			s := sqltest.StartServer(t, kind)
			test(t, s, s.NewDatabase())
		})
	}
}

// TestServerKilledUnderLoad: no two clients hold a key, no token comes twice, and
// everybody goes on when the server is back.
func TestServerKilledUnderLoad(t *testing.T) {
	t.Parallel()
	const clients, kills = 4, 3
	onKilled(t, func(t *testing.T, s *sqltest.Server, d sqltest.Database) {
		if err := Migrate(t.Context(), d.Database); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 4*sqltest.Patience)
		defer cancel()
		var (
			workers sync.WaitGroup
			stop    = make(chan struct{})
			inside  atomic.Int32
			last    atomic.Int64
			rounds  [clients]atomic.Int64
		)
		for i := range clients {
			st, err := New(ctx, d.Database)
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			locks, err := asynclock.New(st, asynclock.WithTTL(2*time.Second))
			if err != nil {
				t.Fatal(err)
			}
			defer locks.Close(ctx)
			workers.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					lease, err := locks.Lock(ctx, "key")
					if err != nil {
						if !errors.Is(err, store.ErrUnreachable) {
							t.Errorf("Lock: got %v, want ErrUnreachable at most", err)
							return
						}
						continue
					}
					n, before := inside.Add(1), last.Swap(lease.Token())
					time.Sleep(time.Millisecond) // so that another has time to come in
					if lease.Valid(0) {          // and was so before
						if n != 1 {
							t.Errorf("%d clients hold the key, want 1", n)
						}
						if lease.Token() <= before {
							t.Errorf("token: got %d, want more than %d of the holder before", lease.Token(), before)
						}
					}
					inside.Add(-1)
					rounds[i].Add(1)
					_ = lease.Unlock(ctx) // the server may be gone
				}
			})
		}
		progress := func() {
			t.Helper()
			var had [clients]int64
			for i := range had {
				had[i] = rounds[i].Load()
			}
			kit.Eventually(t, "every client to have its turn", func() bool {
				for i := range had {
					if rounds[i].Load() < had[i]+3 {
						return false
					}
				}
				return true
			})
		}
		for range kills {
			progress()
			s.Kill()
			time.Sleep(200 * time.Millisecond) // longer than what requests wait for each other
			if err := s.Start(); err != nil {
				t.Fatal(err)
			}
		}
		progress()
		close(stop)
		workers.Wait()
	})
}

// TestSharesOutliveTheServer: as locks of all of a key do, because both were committed.
func TestSharesOutliveTheServer(t *testing.T) {
	t.Parallel()
	onKilled(t, func(t *testing.T, s *sqltest.Server, d sqltest.Database) {
		if err := Migrate(t.Context(), d.Database); err != nil {
			t.Fatal(err)
		}
		c := sqltest.Join(t, newStore(t, d, WithoutNotifications()))
		c.Hold(reader("read", "a"))
		fence := c.Hold(reader("read", "b")).Fence
		permits := sqltest.Request("permits", "c")
		permits.Share = store.Share{Mode: store.Permits, Weight: 2, Limit: 3}
		c.Hold(permits)
		s.Kill()
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		kit.Eventually(t, "the server to answer", func() bool {
			_, err := c.Session.Inspect(t.Context(), "read")
			return err == nil
		})
		if got := c.Hold(reader("read", "d")); got.Fence != fence {
			t.Errorf("grant to a reader that joins: got %+v, want the fence of the others, %d", got, fence)
		}
		if got := c.Acquire(sqltest.Request("read", "writer")); got.Status != store.Waiting || got.Holder != "3 readers" {
			t.Errorf("Acquire by a writer: got %+v, want it to wait for 3 readers", got)
		}
		permits.Owner = "e"
		if got := c.Acquire(permits); got.Status != store.Waiting {
			t.Errorf("Acquire of 2 more permits of 3: got %+v, want Waiting", got)
		}
		q := store.RenewRequest{Key: "permits", Owner: "c", TTL: sqltest.Long, Share: permits.Share}
		if err := c.Session.Renew(t.Context(), []store.RenewRequest{q})[0].Err; err != nil {
			t.Errorf("Renew: got %v, want no error", err)
		}
	})
}

// statements are what a client has sent, without parameters.
type statements struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	s.add(data.SQL)
	return ctx
}

func (*statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (*statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (s *statements) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	s.add(data.SQL)
}

func (*statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (s *statements) add(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.WriteString(text + "\n")
}

func (s *statements) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// TestListenerComesBack: handoffs are told again after the server has cut a client's
// connection, and one that queued meanwhile gets its turn.
func TestListenerComesBack(t *testing.T) {
	t.Parallel()
	d := sqltest.OnPostgres(t)
	prefix := d.NewPrefix(t)
	if err := Migrate(t.Context(), d.Database, WithPrefix(prefix)); err != nil {
		t.Fatal(err)
	}
	config, err := pgxpool.ParseConfig(kit.Require(t, "ASYNCLOCK_POSTGRES_URL"))
	if err != nil {
		t.Fatal(err)
	}
	var said statements
	config.ConnConfig.Tracer, config.ConnConfig.RuntimeParams["application_name"] = &said, prefix
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	traced, err := New(t.Context(), sqlconn.PostgresPool(pool), WithPrefix(prefix), WithoutLogger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(traced.Close)
	a, b := join(t, newStore(t, d, WithPrefix(prefix))), join(t, traced)
	h := a.Acquire(sqltest.Request("key", "a"))
	if h.Status != store.Granted {
		t.Fatalf("Acquire of a free key: got %+v, want Granted", h)
	}
	for range 2 {
		d.Run(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", prefix)
		b.AwaitKind(store.EventResync) // it is down, and up again
		b.awaitLive()
	}
	if all := said.all(); !strings.Contains(all, "LISTEN") || strings.Contains(all, b.session.channel) {
		t.Errorf("statements: got\n%s\nwant one that listens, and none with the channel, which the server would show to others", all)
	}
	if q := b.Acquire(sqltest.Request("key", "b")); q.Status != store.Waiting || q.Recheck != 0 {
		t.Fatalf("Acquire of a held key: got %+v, want Waiting without Recheck", q)
	}
	a.Release("key", "a")
	if e := b.AwaitKind(store.EventGrant); e.Owner != "b" || e.Grant.Token <= h.Token {
		t.Errorf("event: got %+v, want a grant to b with a token above %d", e, h.Token)
	}
}
