// SPDX-License-Identifier: Apache-2.0

package sqltest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

// A commitSink is a connection on which, once a COMMIT is to be sent, nothing is sent any
// more: that of a client that stops there, with its side of the connection as it was.
type commitSink struct {
	net.Conn

	stop *sync.Once
	at   chan struct{} // closed when it has stopped
}

func (c commitSink) Write(b []byte) (int, error) {
	if bytes.Contains(bytes.ToLower(b), []byte("commit\x00")) {
		c.stop.Do(func() { close(c.at) })
	}
	select {
	case <-c.at:
		return len(b), nil
	default:
		return c.Conn.Write(b)
	}
}

// clientThatStopsBeforeItsCommitKeepsNoRow is a test: where the store has to begin and end
// its transactions itself, a client can stop in between, with the rows of a whole batch
// locked.
func (s Suite) clientThatStopsBeforeItsCommitKeepsNoRow(t *testing.T) {
	config, err := pgx.ParseConfig(kit.Require(t, "ASYNCLOCK_POSTGRES_URL"))
	if err != nil {
		t.Fatal(err)
	}
	b := s.NewTables(t, OnPostgres(t))
	config.RuntimeParams["default_transaction_isolation"] = "serializable"
	dial := config.DialFunc
	armed, at, stop := make(chan struct{}), make(chan struct{}), new(sync.Once)
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		select {
		case <-armed:
			return commitSink{conn, stop, at}, err
		default:
			return conn, err
		}
	}
	db := sql.OpenDB(stdlib.GetConnector(*config))
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxIdleConns(0) // so that each statement dials
	stopped, err := s.OpenPolling(t.Context(), sqlconn.Postgres(db), b.Prefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stopped.Close)
	stops, other := s.Join(t, stopped), b.join(t)
	close(armed)
	ctx, cancel := context.WithTimeout(t.Context(), 2*Patience)
	defer cancel()
	answer := make(chan error, 1)
	go func() { // ends when the server has hung up, or with ctx
		answer <- stops.Session.Acquire(ctx, []store.AcquireRequest{Request("key", "a")})[0].Err
	}()
	<-at
	inTime, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	got := other.Session.Acquire(inTime, []store.AcquireRequest{Request("key", "b")})[0]
	for got.Err != nil && inTime.Err() == nil { // as long as the row is locked
		got = other.Session.Acquire(inTime, []store.AcquireRequest{Request("key", "b")})[0]
	}
	if got.Status != store.Granted {
		t.Errorf("Acquire behind a client that stopped before its COMMIT: got %+v, want Granted", got)
	}
	cancel()
	if err := <-answer; !errors.Is(err, store.ErrUnreachable) {
		t.Errorf("Acquire whose COMMIT never came: got %v, want ErrUnreachable", err)
	}
}
