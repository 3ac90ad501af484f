// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/proc"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/servers/dbserver"
	"github.com/asynclock/asynclock-go/store"
)

// patience is how long a test waits for what has to happen.
const patience = 30 * time.Second

// A dbServer is one that a test may kill.
type dbServer struct {
	t       *testing.T
	kind    *dbserver.Kind
	addr    string
	command func() *exec.Cmd
	process *proc.Process
}

// startServer starts one of the kind that the variable is for, which ends with the test.
func startServer(t *testing.T, kind *dbserver.Kind) *dbServer {
	t.Helper()
	kit.Require(t, kind.Variable) // where tests with servers are wanted at all
	data, err := dbserver.NewData()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(data.Dir) })
	port := freePort(t)
	command, err := data.Prepare(t.Context(), kind, "data", port)
	if err != nil {
		t.Fatal(err)
	}
	s := &dbServer{t: t, kind: kind, addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), command: command}
	s.start()
	t.Cleanup(s.kill)
	return s
}

func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := 21000 + rand.IntN(3000) // below those for outgoing connections
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil && l.Close() == nil {
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}

func (s *dbServer) start() {
	s.t.Helper()
	process, err := proc.Start(s.command())
	if err != nil {
		s.t.Fatal(err)
	}
	s.process = process
}

// kill ends it at once, as a crash does.
func (s *dbServer) kill() {
	_ = s.process.Child.Signal(s.kind.Stop) // fails only if it has ended
	<-s.process.Ended()
}

// database waits until the server answers, and makes a database.
func (s *dbServer) database() Database {
	s.t.Helper()
	admin := openDB(s.t, s.kind.Driver, s.kind.URL(s.addr, s.kind.System))
	s.await("the server to answer", func() bool {
		_, err := admin.ExecContext(s.t.Context(), "CREATE DATABASE asynclock")
		return err == nil
	})
	db := openDB(s.t, s.kind.Driver, s.kind.URL(s.addr, "asynclock"))
	if s.kind.Driver == dbserver.Postgres.Driver {
		return Postgres(db)
	}
	return MySQL(db)
}

func (s *dbServer) await(what string, isSo func() bool) {
	s.t.Helper()
	for end := time.Now().Add(patience); !isSo(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// onKilled runs a test on a server of each kind that it may kill.
func onKilled(t *testing.T, test func(t *testing.T, s *dbServer, d Database)) {
	t.Helper()
	for _, kind := range dbserver.Kinds {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, kind)
			test(t, s, s.database())
		})
	}
}

// TestServerKilledUnderLoad: no two clients hold a key, no token comes twice, and
// everybody goes on when the server is back.
func TestServerKilledUnderLoad(t *testing.T) {
	t.Parallel()
	const clients, kills = 4, 3
	onKilled(t, func(t *testing.T, s *dbServer, d Database) {
		if err := Migrate(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
		defer cancel()
		var (
			workers sync.WaitGroup
			stop    = make(chan struct{})
			inside  atomic.Int32
			last    atomic.Int64
			rounds  [clients]atomic.Int64
		)
		for i := range clients {
			st, err := New(ctx, d)
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
			s.await("every client to have its turn", func() bool {
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
			s.kill()
			time.Sleep(200 * time.Millisecond) // longer than what requests wait for each other
			s.start()
		}
		progress()
		close(stop)
		workers.Wait()
	})
}

// TestListenerComesBack: handoffs are told again after the server has cut a client's
// connection, and one that queued meanwhile gets its turn.
func TestListenerComesBack(t *testing.T) {
	t.Parallel()
	d := onPostgres(t)
	prefix := newPrefix(t, d)
	if err := Migrate(t.Context(), d, WithPrefix(prefix)); err != nil {
		t.Fatal(err)
	}
	st := newStore(t, d, WithPrefix(prefix))
	a, b := join(t, st), join(t, st)
	h := a.acquire(request("key", "a"))
	if h.Status != store.Granted {
		t.Fatalf("Acquire of a free key: got %+v, want Granted", h)
	}
	for range 2 {
		run(t, d, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE $1", "LISTEN%"+b.session.channel+"%")
		b.awaitKind(store.EventResync) // it is down, and up again
		b.awaitLive()
	}
	if q := b.acquire(request("key", "b")); q.Status != store.Waiting || q.Recheck != 0 {
		t.Fatalf("Acquire of a held key: got %+v, want Waiting without Recheck", q)
	}
	a.release("key", "a")
	if e := b.awaitKind(store.EventGrant); e.Owner != "b" || e.Grant.Token <= h.Token {
		t.Errorf("event: got %+v, want a grant to b with a token above %d", e, h.Token)
	}
}
