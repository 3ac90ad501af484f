// SPDX-License-Identifier: Apache-2.0

package cronlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/contrib/cronlock"
	"github.com/asynclock/asynclock-go/internal/test/kit/adapterkit"
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

// err returns all errors since the call before in one.
func (j *journal) err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	err := errors.Join(j.errors...)
	j.errors = nil
	return err
}

// A host is one process with a crontab. All hosts of a world have the same store.
type host struct {
	*testing.T
	locker  *cronlock.Locker
	crontab *cron.Cron
	log     *journal
	end     context.CancelFunc // of the locker's context
}

// newHost makes a host, which stops with the test.
func newHost(w *adapterkit.World) *host {
	w.Helper()
	locks := w.Client()
	ctx, end := context.WithCancel(w.Context())
	w.Cleanup(end)
	h := &host{w.T, nil, cron.New(cron.WithLogger(cron.DiscardLogger)), new(journal), end}
	var err error
	if h.locker, err = cronlock.New(ctx, locks, h.log); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { <-h.crontab.Stop().Done() })
	return h
}

// plain makes a job of a plain function, which runs each minute.
func (h *host) plain(fn func(), options ...asynclock.LockOption) {
	h.Helper()
	once, err := h.locker.Once("job", options...)
	if err != nil {
		h.Fatal(err)
	}
	h.add(once(cron.FuncJob(fn)))
}

// job makes a job of a function with a lease, which runs each minute.
func (h *host) job(fn cronlock.Func) {
	h.Helper()
	job, err := h.locker.Job("job", fn)
	if err != nil {
		h.Fatal(err)
	}
	h.add(job)
}

func (h *host) add(job cron.Job) {
	h.Helper()
	if _, err := h.crontab.AddJob("@every 1m", cron.NewChain(cron.Recover(h.log)).Then(job)); err != nil {
		h.Fatal(err)
	}
	h.crontab.Start()
}

// run starts a clock. The function that it returns waits for the next run, and returns the errors that were logged.
func (h *host) run() func() error {
	wait := adapterkit.Ticks(time.Minute)
	return func() error {
		wait()
		return h.log.err()
	}
}
