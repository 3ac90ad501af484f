// SPDX-License-Identifier: Apache-2.0

package asynqlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"
	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/contrib/asynqlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const delay = 10 * time.Minute

// account returns the key of a task, whose payload is an account.
func account(task *asynq.Task) string {
	if len(task.Payload()) == 0 {
		return ""
	}
	return "account:" + string(task.Payload())
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

// A world has a place for locks, and the client of a host.
type world struct {
	*testing.T
	store *asynclocktest.Store
	locks *asynclock.Client
}

// story tells a story in a bubble.
func story(t *testing.T, tell func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := asynclocktest.New()
		tell(&world{t, store, newClient(t, store)})
	})
}

// process has the middleware process a task of the account "a". It is none of asynq's server, so no attempt is the last.
func (w *world) process(handler asynq.HandlerFunc, options ...asynclock.LockOption) error {
	w.Helper()
	perKey, err := asynqlock.PerKey(w.locks, account, delay, options...)
	if err != nil {
		w.Fatal(err)
	}
	return perKey.Middleware(handler).ProcessTask(w.Context(), asynq.NewTask("pay", []byte("a")))
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

func never(t *testing.T) asynq.HandlerFunc {
	return func(context.Context, *asynq.Task) error {
		t.Error("the task was processed")
		return nil
	}
}

// pass lets time pass, and what happens in it be done.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
