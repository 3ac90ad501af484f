// SPDX-License-Identifier: Apache-2.0

// Command http-invoice serves POST /invoices, which may be repeated: the header Idempotency-Key names the
// invoice. The program starts the service, sends requests that get in each other's way, and prints the answers.
//
// Use it for requests that cost money and that clients repeat. A request waits for its key for a bounded time.
// 409 means that an earlier one with the same key is still at work, and 503 that the service can't tell.
//
// If the lease is lost, the context ends the request, and the answer is 503. Whatever the request did by then, the
// client may repeat it and gets the same invoice. A request that was paused and writes after the next holder of the
// key is refused by the fence, in the transaction that writes.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/fence/fencesql"
	"github.com/asynclock/asynclock-go/store/memstore"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

func main() {
	url := flag.String("redis", "", "where the locks are, as redis://localhost:6379; without it: in this process")
	postgres := flag.String("postgres", "", "where the invoices are, as postgres://localhost/invoices; without it: in SQLite")
	flag.Parse()
	if err := run(context.Background(), connector(*url), *postgres); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, connect func() (*asynclock.Client, error), postgres string) error {
	dir, err := os.MkdirTemp("", "invoices")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	driver, source, dialect := "pgx", postgres, fencesql.Postgres
	if postgres == "" {
		driver, dialect = "sqlite", fencesql.SQLite
		source = "file:" + filepath.Join(dir, "invoices.db") + "?_pragma=busy_timeout(10000)&_txlock=immediate"
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		return err
	}
	defer db.Close()
	locks, err := connect()
	if err != nil {
		return err
	}
	defer locks.Close(ctx)
	operator, err := connect()
	if err != nil {
		return err
	}
	defer operator.Close(ctx)

	s := &service{db: db, locks: locks, wait: 10 * time.Second}
	if s.fences, err = fencesql.New(dialect); err != nil {
		return err
	}
	if err := s.fences.Migrate(ctx, db); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS invoices (name TEXT PRIMARY KEY, amount BIGINT NOT NULL)"); err != nil {
		return err
	}
	return play(ctx, s, operator)
}

// A service makes invoices.
type service struct {
	db     *sql.DB
	fences *fencesql.Fence
	locks  *asynclock.Client
	wait   time.Duration               // for the key, at most
	render func(context.Context) error // makes the document, which takes its time
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.Header.Get("Idempotency-Key")
	amount, err := strconv.ParseInt(r.FormValue("amount"), 10, 64)
	if name == "" || len(name) > 64 || err != nil || amount <= 0 {
		http.Error(w, "an Idempotency-Key of at most 64 bytes and an amount are required", http.StatusBadRequest)
		return
	}
	var had int64
	err = s.locks.WithLock(r.Context(), "invoice:"+name, func(ctx context.Context, lease *asynclock.Lease) error {
		had, err = s.create(ctx, lease, name, amount)
		return err
	}, asynclock.WithWait(s.wait))
	switch {
	case r.Context().Err() != nil: // nobody waits for the answer
	case errors.Is(err, asynclock.ErrHeld): // for as long as we waited
		http.Error(w, "the invoice is being made", http.StatusConflict)
	case errors.Is(err, asynclock.ErrInvalidKey): // it is not UTF-8
		http.Error(w, "bad Idempotency-Key", http.StatusBadRequest)
	case errors.Is(err, asynclock.ErrLost), errors.Is(err, fence.ErrStale), errors.Is(err, asynclock.ErrUnreachable),
		errors.Is(err, asynclock.ErrClosed), errors.Is(err, asynclock.ErrQueueFull):
		w.Header().Set("Retry-After", "1")
		http.Error(w, "repeat the request", http.StatusServiceUnavailable)
	case err != nil:
		log.Print(err)
		http.Error(w, "failed", http.StatusInternalServerError)
	case had == 0:
		w.WriteHeader(http.StatusCreated)
	case had != amount:
		http.Error(w, "another invoice has this Idempotency-Key", http.StatusUnprocessableEntity)
	}
}

// create makes an invoice, unless there is one, and then returns the amount of that. Both transactions show the
// token. After the first, no earlier holder can write any more. The second fails if a later holder was faster.
func (s *service) create(ctx context.Context, lease fence.Holder, name string, amount int64) (had int64, err error) {
	err = s.guarded(ctx, lease, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, "SELECT amount FROM invoices WHERE name = $1", name).Scan(&had)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil || had != 0 {
		return had, err
	}
	if err := s.render(ctx); err != nil {
		return 0, err
	}
	return 0, s.insert(ctx, lease, name, amount)
}

func (s *service) insert(ctx context.Context, lease fence.Holder, name string, amount int64) error {
	return s.guarded(ctx, lease, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO invoices (name, amount) VALUES ($1, $2)", name, amount)
		return err
	})
}

// guarded runs a transaction, unless a later holder has committed one.
func (s *service) guarded(ctx context.Context, lease fence.Holder, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	if err := s.fences.Guard(ctx, tx, lease); err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// connector returns what makes the client of a process: of the Redis at url, or, without one, of a store in
// memory, which all clients share as they would a server.
func connector(url string) func() (*asynclock.Client, error) {
	if url == "" {
		store := memstore.New()
		return func() (*asynclock.Client, error) { return asynclock.New(store) }
	}
	return func() (*asynclock.Client, error) {
		store, err := redisstore.OpenURL(url)
		if err != nil {
			return nil, err
		}
		return asynclock.New(store, asynclock.WithOwnedStore())
	}
}
