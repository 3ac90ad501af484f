// SPDX-License-Identifier: Apache-2.0

package riverlock_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertest"
	"github.com/riverqueue/river/rivertype"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/contrib/riverlock"
)

// migrated is an empty queue, as a file. It is made once, because that takes a second.
var migrated []byte

func TestMain(m *testing.M) {
	var err error
	if migrated, err = newQueue(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

func newQueue(ctx context.Context) ([]byte, error) {
	dir, err := os.MkdirTemp("", "riverlock")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "queue.db")
	db, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	migrator, err := rivermigrate.New(riversqlite.New(db), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

const snooze = 10 * time.Minute

// A payment is a job of an account.
type payment struct {
	Account string
}

func (payment) Kind() string { return "payment" }

// account returns the key of a payment.
func account(job *rivertype.JobRow) string {
	var p payment
	if json.Unmarshal(job.EncodedArgs, &p) != nil || p.Account == "" {
		return ""
	}
	return "account:" + p.Account
}

// A worker is a function.
type worker struct {
	river.WorkerDefaults[payment]
	work func(ctx context.Context) error
}

func (w *worker) Work(ctx context.Context, _ *river.Job[payment]) error { return w.work(ctx) }

// newDatabase makes an empty queue, which is closed with the test.
func newDatabase(t *testing.T) *sql.DB {
	t.Helper()
	file := filepath.Join(t.TempDir(), "queue.db")
	if err := os.WriteFile(file, migrated, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1) // as riversqlite says
	return db
}

// newClient makes a client, which is closed with the test.
func newClient(t *testing.T, store *asynclocktest.Store) *asynclock.Client {
	t.Helper()
	locks, err := asynclock.New(store, asynclock.WithoutLogger())
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(context.Background())
	end()
	t.Cleanup(func() { locks.Close(ended) }) // which waits for a second, if a test has failed and left a lease
	return locks
}

// A world is River with a queue, whose jobs are worked one by one, and a place for locks.
type world struct {
	*testing.T
	store *asynclocktest.Store
	locks *asynclock.Client // of the worker
	db    *sql.DB
}

// story tells a story in a bubble.
func story(t *testing.T, tell func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := asynclocktest.New()
		tell(&world{t, store, newClient(t, store), newDatabase(t)})
	})
}

// work has River work a payment of the account "a", and returns what became of the job. It must not be kept.
func (w *world) work(work func(ctx context.Context) error, options ...asynclock.LockOption) *rivertype.JobRow {
	w.Helper()
	perKey, err := riverlock.PerKey(w.locks, account, snooze, options...)
	if err != nil {
		w.Fatal(err)
	}
	return w.workWith(perKey, payment{"a"}, work)
}

func (w *world) workWith(middleware rivertype.Middleware, job payment, work func(ctx context.Context) error) *rivertype.JobRow {
	w.Helper()
	config := &river.Config{Middleware: []rivertype.Middleware{middleware}, Logger: slog.New(slog.DiscardHandler)}
	tx, err := w.db.BeginTx(w.Context(), nil)
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	result, err := rivertest.NewWorker(w.T, riversqlite.New(w.db), config, &worker{work: work}).
		Work(w.Context(), w.T, tx, job, &river.InsertOpts{MaxAttempts: 1})
	if result == nil || result.Job == nil {
		w.Fatalf("got no job: %v", err)
	}
	return result.Job
}

// wantSnoozed checks that a job comes again, has all its attempts and was not worked.
func (w *world) wantSnoozed(job *rivertype.JobRow) {
	w.Helper()
	if job.State != rivertype.JobStateScheduled || job.Attempt != 0 || len(job.Errors) > 0 {
		w.Errorf("got state %s, %d attempts, errors %v, want a snooze", job.State, job.Attempt, job.Errors)
	}
	if in := time.Until(job.ScheduledAt); in <= 0 || in > snooze {
		w.Errorf("the job comes in %v, want at most %v", in, snooze)
	}
}

// wantFailed checks that a job has failed for good, since it has one attempt.
func (w *world) wantFailed(job *rivertype.JobRow) {
	w.Helper()
	if job.State != rivertype.JobStateDiscarded || len(job.Errors) != 1 {
		w.Errorf("got state %s, errors %v, want it discarded", job.State, job.Errors)
	}
}

func (w *world) wantComplete(job *rivertype.JobRow) {
	w.Helper()
	if job.State != rivertype.JobStateCompleted {
		w.Errorf("got state %s, errors %v, want it completed", job.State, job.Errors)
	}
}

// wantFree checks that another client can take the key.
func (w *world) wantFree() {
	w.Helper()
	lease, err := newClient(w.T, w.store).TryLock(w.Context(), "account:a")
	if err != nil {
		w.Fatalf("got %v, want the key free", err)
	}
	lease.Unlock(w.Context())
}

func never(t *testing.T) func(context.Context) error {
	return func(context.Context) error {
		t.Error("the job was worked")
		return nil
	}
}

// pass lets time pass, and what happens in it be done.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
