// SPDX-License-Identifier: Apache-2.0

package cronlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"
	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/contrib/cronlock"
	"github.com/asynclock/asynclock-go/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A journal is a cron.Logger that keeps what is said.
type journal struct {
	mu     sync.Mutex
	infos  []string
	errors []error
}

func (j *journal) Info(message string, values ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.infos = append(j.infos, fmt.Sprint(message, " ", values))
}

func (j *journal) Error(err error, message string, values ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.errors = append(j.errors, fmt.Errorf("%s %v: %w", message, values, err))
}

// err returns all errors in one.
func (j *journal) err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return errors.Join(j.errors...)
}

// A host is one process with a crontab. All hosts of a test have the same store.
type host struct {
	*testing.T
	locks   *asynclock.Client
	locker  *cronlock.Locker
	crontab *cron.Cron
	log     *journal
	end     context.CancelFunc // of the locker's context
}

// newHost makes a host, which stops with the test.
func newHost(t *testing.T, store store.Store) *host {
	t.Helper()
	locks, err := asynclock.New(store, asynclock.WithoutLogger())
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(context.Background())
	end()
	t.Cleanup(func() { locks.Close(ended) }) // which waits for a second, if a test has failed and left a lease
	ctx, end := context.WithCancel(t.Context())
	t.Cleanup(end)
	h := &host{t, locks, nil, cron.New(cron.WithLogger(cron.DiscardLogger)), new(journal), end}
	if h.locker, err = cronlock.New(ctx, locks, h.log); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { <-h.crontab.Stop().Done() })
	return h
}

// plain makes a job of a plain function.
func (h *host) plain(every string, fn func(), options ...asynclock.LockOption) {
	h.Helper()
	once, err := h.locker.Once("job", options...)
	if err != nil {
		h.Fatal(err)
	}
	h.add(every, cron.NewChain(cron.Recover(h.log), once).Then(cron.FuncJob(fn)))
}

// job makes a job of a function with a lease.
func (h *host) job(every string, fn cronlock.Func, options ...asynclock.LockOption) {
	h.Helper()
	job, err := h.locker.Job("job", fn, options...)
	if err != nil {
		h.Fatal(err)
	}
	h.add(every, job)
}

func (h *host) add(every string, job cron.Job) {
	h.Helper()
	if _, err := h.crontab.AddJob("@every "+every, job); err != nil {
		h.Fatal(err)
	}
	h.crontab.Start()
}

// hold takes the key of the job, as another host would.
func hold(t *testing.T, locks *asynclock.Client) *asynclock.Lease {
	t.Helper()
	lease, err := locks.TryLock(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// story tells a story in a bubble.
func story(t *testing.T, tell func(t *testing.T, store *asynclocktest.Store)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { tell(t, asynclocktest.New()) })
}

// pass lets time pass, and what happens in it be done.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
