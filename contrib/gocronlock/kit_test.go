// SPDX-License-Identifier: Apache-2.0

package gocronlock_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/contrib/gocronlock"
	"github.com/asynclock/asynclock-go/internal/test/kit/adapterkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A host is one process with a scheduler. All hosts of a world have the same store.
type host struct {
	*testing.T
	locker    *gocronlock.Locker
	scheduler gocron.Scheduler
}

// newHost makes a host, which is shut down with the test.
func newHost(w *adapterkit.World, options []asynclock.LockOption, scheduling ...gocron.SchedulerOption) *host {
	w.Helper()
	locker, err := gocronlock.New(w.Client(), "test:", options...)
	if err != nil {
		w.Fatal(err)
	}
	scheduler, err := gocron.NewScheduler(append([]gocron.SchedulerOption{gocron.WithDistributedLocker(locker)}, scheduling...)...)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := scheduler.Shutdown(); err != nil {
			w.Error(err)
		}
	})
	return &host{w.T, locker, scheduler}
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

// run starts the scheduler. The function that it returns waits for the next run of each minute, and returns the error
// that a listener was told.
func (h *host) run(told *errs) func() error {
	h.scheduler.Start()
	wait := adapterkit.Ticks(time.Minute)
	return func() error {
		told.last.Store(nil)
		wait()
		return told.get()
	}
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

// refused returns a listener for the error of a lock.
func refused(to *errs) gocron.EventListener {
	return gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { to.add(err) })
}

// failed returns a listener for the error of a job.
func failed(to *errs) gocron.EventListener {
	return gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { to.add(err) })
}

// panicked returns a listener for the panic of a job.
func panicked(to *errs) gocron.EventListener {
	return gocron.AfterJobRunsWithPanic(func(_ uuid.UUID, _ string, value any) { to.add(fmt.Errorf("panic: %v", value)) })
}
