// SPDX-License-Identifier: Apache-2.0

package asynqlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/contrib/asynqlock"
	"github.com/asynclock/asynclock-go/internal/test/kit/adapterkit"
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

// open makes a middleware which processes tasks of the account "a". They are none of asynq's server, so no attempt is
// the last.
func open(w *adapterkit.World, work func(context.Context) error, options ...asynclock.LockOption) (run func() error) {
	w.Helper()
	perKey, err := asynqlock.PerKey(w.Client(), account, delay, options...)
	if err != nil {
		w.Fatal(err)
	}
	handler := perKey.Middleware(asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error { return work(ctx) }))
	return func() (err error) {
		defer func() { // as asynq's server does
			if panicked := recover(); panicked != nil {
				err = fmt.Errorf("panic: %v", panicked)
			}
		}()
		return handler.ProcessTask(w.Context(), asynq.NewTask("pay", []byte("a")))
	}
}
