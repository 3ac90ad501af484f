// SPDX-License-Identifier: Apache-2.0

package gocronlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/contrib/gocronlock"
	"github.com/asynclock/asynclock-go/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A host is one process with a scheduler. All hosts of a test have the same store.
type host struct {
	*testing.T
	locks     *asynclock.Client
	locker    *gocronlock.Locker
	scheduler gocron.Scheduler
}

// newHost makes a host, which is shut down with the test.
func newHost(t *testing.T, store store.Store, options []asynclock.LockOption, scheduling ...gocron.SchedulerOption) *host {
	t.Helper()
	locks, err := asynclock.New(store, asynclock.WithoutLogger())
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(context.Background())
	end()
	t.Cleanup(func() { locks.Close(ended) }) // which waits for a second, if a test has failed and left a lease
	locker, err := gocronlock.NewLocker(locks, "test:", options...)
	if err != nil {
		t.Fatal(err)
	}
	scheduler, err := gocron.NewScheduler(append([]gocron.SchedulerOption{gocron.WithDistributedLocker(locker)}, scheduling...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := scheduler.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	return &host{t, locks, locker, scheduler}
}

// every makes a job of a plain function.
func (h *host) every(d time.Duration, fn func(), listeners ...gocron.EventListener) {
	h.Helper()
	_, err := h.scheduler.NewJob(gocron.DurationJob(d), gocron.NewTask(fn),
		gocron.WithName("job"), gocron.WithEventListeners(listeners...))
	if err != nil {
		h.Fatal(err)
	}
}

// task makes a job of a function with a lease, which runs each minute.
func (h *host) task(fn gocronlock.Func, listeners ...gocron.EventListener) {
	h.Helper()
	task, options, err := h.locker.Task("job", fn)
	if err != nil {
		h.Fatal(err)
	}
	options = append(options, gocron.WithEventListeners(listeners...))
	if _, err := h.scheduler.NewJob(gocron.DurationJob(time.Minute), task, options...); err != nil {
		h.Fatal(err)
	}
}

// hold takes the key of the job, as another host would.
func hold(t *testing.T, locks *asynclock.Client) *asynclock.Lease {
	t.Helper()
	lease, err := locks.TryLock(t.Context(), "test:job")
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

// errs receives the errors of a listener. It keeps the last one.
type errs struct{ last atomic.Pointer[error] }

func (e *errs) add(err error) { e.last.Store(&err) }

// get returns the last error, or nil if there is none.
func (e *errs) get() error {
	if err := e.last.Load(); err != nil {
		return *err
	}
	return nil
}
