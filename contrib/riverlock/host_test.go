// SPDX-License-Identifier: Apache-2.0

package riverlock_test

import (
	"context"
	"database/sql"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivertype"

	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/contrib/riverlock"
	"github.com/asynclock/asynclock-go/internal/test/kit/adapterkit"
)

// newHost makes River on a host, which works payments four at a time, until the test ends.
func newHost(t *testing.T, store *asynclocktest.Store, db *sql.DB, work func(ctx context.Context) error) *river.Client[*sql.Tx] {
	t.Helper()
	perKey, err := riverlock.PerKey(adapterkit.NewClient(t, store), account, 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{work: work})
	client, err := river.NewClient(riversqlite.New(db), &river.Config{
		Logger:            slog.New(slog.DiscardHandler),
		FetchCooldown:     20 * time.Millisecond,
		FetchPollInterval: 20 * time.Millisecond,
		Middleware:        []rivertype.Middleware{perKey},
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 4}},
		Workers:           workers,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return client
}

// Two hosts work the payments of one account. The first payment goes on until another has been snoozed.
func TestHostsWorkOneJobPerKeyAtATime(t *testing.T) {
	t.Parallel()
	const jobs = 5
	store, db := asynclocktest.New(), newDatabase(t)
	contended := make(chan struct{})
	contend := sync.OnceFunc(func() { close(contended) })
	var atWork atomic.Int64
	work := func(ctx context.Context) error {
		defer atWork.Add(-1)
		if n := atWork.Add(1); n > 1 {
			t.Errorf("%d payments of an account at a time", n)
			contend()
		}
		select {
		case <-contended:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	a, b := newHost(t, store, db, work), newHost(t, store, db, work)
	for _, host := range []*river.Client[*sql.Tx]{a, b} {
		snoozed, end := host.Subscribe(river.EventKindJobSnoozed)
		defer end()
		go func() { // ends with the subscription
			for range snoozed {
				contend()
			}
		}()
	}
	done, end := a.Subscribe(river.EventKindJobCompleted, river.EventKindJobFailed)
	defer end()
	doneElsewhere, end := b.Subscribe(river.EventKindJobCompleted, river.EventKindJobFailed)
	defer end()
	for range jobs {
		if _, err := a.Insert(t.Context(), payment{"a"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for range jobs {
		var e *river.Event
		select {
		case e = <-done:
		case e = <-doneElsewhere:
		case <-time.After(time.Minute):
			t.Fatal("not all payments are done in a minute")
		}
		if e.Kind != river.EventKindJobCompleted || e.Job.Attempt != 1 {
			t.Errorf("got %s after %d attempts, want it completed in its first", e.Kind, e.Job.Attempt)
		}
	}
}
