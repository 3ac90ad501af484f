// SPDX-License-Identifier: Apache-2.0

package riverlock_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertest"
	"github.com/riverqueue/river/rivertype"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/contrib/riverlock"
	"github.com/asynclock/asynclock-go/internal/test/kit/adapterkit"
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

// A world is River with a queue, whose jobs are worked one by one, and a place for locks.
type world struct {
	*adapterkit.World
	db *sql.DB
}

// story tells a story in a bubble.
func story(t *testing.T, tell func(w *world)) {
	t.Helper()
	adapterkit.Story(t, func(w *adapterkit.World) { tell(&world{w, newDatabase(w.T)}) })
}

// perKey makes the middleware of a host.
func (w *world) perKey(options ...asynclock.LockOption) *riverlock.Middleware {
	w.Helper()
	perKey, err := riverlock.PerKey(w.Client(), account, snooze, options...)
	if err != nil {
		w.Fatal(err)
	}
	return perKey
}

// work has River work a payment, and returns what became of the job. It must not be kept.
func (w *world) work(middleware rivertype.Middleware, job payment, work func(ctx context.Context) error) *rivertype.JobRow {
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

// errSnoozed stands for a snooze, which is no error of the job.
var errSnoozed = errors.New("snoozed")

// A failure is what River keeps of an error: its text.
type failure string

func (f failure) Error() string { return string(f) }
func (f failure) Is(target error) bool {
	return strings.Contains(string(f), strings.TrimPrefix(target.Error(), "asynclock: "))
}

// told returns what a job says to those who look at it. It has failed for good with its first error.
func told(job *rivertype.JobRow) error {
	switch job.State {
	case rivertype.JobStateCompleted:
		return nil
	case rivertype.JobStateScheduled:
		return errSnoozed
	default:
		return failure(job.Errors[0].Error)
	}
}

// open makes a host whose payments of the account "a" are worked.
func open(w *adapterkit.World, work func(context.Context) error) (run func() error) {
	river := &world{w, newDatabase(w.T)}
	perKey := river.perKey()
	return func() error { return told(river.work(perKey, payment{"a"}, work)) }
}
