// SPDX-License-Identifier: Apache-2.0

package asynqlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/contrib/asynqlock"
	"github.com/asynclock/asynclock-go/internal/backoff"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/adapterkit"
)

// A queue is asynq's, in a Redis of its own, with hosts that process it.
type queue struct {
	*testing.T
	redis  asynq.RedisClientOpt
	client *asynq.Client
	store  *asynclocktest.Store

	mu      sync.Mutex
	refused []error // in the order in which asynq was told
}

func newQueue(t *testing.T) *queue {
	t.Helper()
	q := &queue{T: t, redis: asynq.RedisClientOpt{Addr: miniredis.RunT(t).Addr()}, store: asynclocktest.New()}
	q.client = asynq.NewClient(q.redis)
	t.Cleanup(func() { q.client.Close() })
	return q
}

// newHost starts a server, which stops with the test.
func (q *queue) newHost(handler asynq.HandlerFunc, options ...asynclock.LockOption) {
	q.Helper()
	perKey, err := asynqlock.PerKey(adapterkit.NewClient(q.T, q.store), account, time.Millisecond, options...)
	if err != nil {
		q.Fatal(err)
	}
	server := asynq.NewServer(q.redis, perKey.Configure(asynq.Config{
		Concurrency:              4,
		DelayedTaskCheckInterval: 50 * time.Millisecond,
		ErrorHandler:             asynq.ErrorHandlerFunc(func(_ context.Context, _ *asynq.Task, err error) { q.refuse(err) }),
		LogLevel:                 asynq.FatalLevel,
		TaskCheckInterval:        20 * time.Millisecond,
	}))
	if err := server.Start(perKey.Middleware(handler)); err != nil {
		q.Fatal(err)
	}
	q.Cleanup(server.Shutdown)
}

func (q *queue) refuse(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refused = append(q.refused, err)
}

// refusals returns how often asynq was told that a task was not begun, and any other error that it was told.
func (q *queue) refusals() (n int, others error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, err := range q.refused {
		if errors.Is(err, asynqlock.ErrNotBegun) {
			n++
		} else {
			others = errors.Join(others, err)
		}
	}
	return n, others
}

func (q *queue) enqueue(n int, options ...asynq.Option) {
	q.Helper()
	for range n {
		if _, err := q.client.Enqueue(asynq.NewTask("pay", []byte("a")), options...); err != nil {
			q.Fatal(err)
		}
	}
}

// wait waits for n tasks.
func (q *queue) wait(done <-chan struct{}, n int) {
	q.Helper()
	for range n {
		select {
		case <-done:
		case <-time.After(time.Minute):
			q.Fatalf("not all tasks are done in a minute; asynq was told %v", q.refused)
		}
	}
}

// Two hosts process tasks of one account, which have one retry each. The first task goes on until others were refused.
func TestHostsProcessOneTaskPerKeyAtATime(t *testing.T) {
	t.Parallel()
	const tasks = 3
	q := newQueue(t)
	done := make(chan struct{}, tasks)
	atWork := make(chan struct{}, 1)
	handler := func(ctx context.Context, _ *asynq.Task) error {
		select {
		case atWork <- struct{}{}:
			defer func() { <-atWork }()
		default:
			t.Error("two tasks of an account at a time")
		}
		for n := 0; n < tasks-1; n, _ = q.refusals() {
			if !backoff.Sleep(ctx, 10*time.Millisecond) {
				return ctx.Err()
			}
		}
		if retried, _ := asynq.GetRetryCount(ctx); retried != 0 {
			t.Errorf("got %d retries, want none", retried)
		}
		done <- struct{}{}
		return nil
	}
	q.newHost(handler)
	q.newHost(handler)
	q.enqueue(tasks, asynq.MaxRetry(1), asynq.Timeout(30*time.Second))
	q.wait(done, tasks)
	if _, others := q.refusals(); others != nil {
		t.Errorf("asynq was told %v", others)
	}
}

// asynq would archive the task, which would never have been processed.
func TestTheLastAttemptWaitsForItsKey(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	done := make(chan struct{}, 1)
	operator := adapterkit.NewClient(t, q.store)
	lease, err := operator.Lock(t.Context(), "account:a")
	if err != nil {
		t.Fatal(err)
	}
	q.newHost(func(context.Context, *asynq.Task) error { done <- struct{}{}; return nil })
	q.enqueue(1, asynq.MaxRetry(0))
	kit.Eventually(t, "the task waits", func() bool {
		info, err := operator.Inspect(t.Context(), "account:a")
		n, _ := q.refusals()
		return err == nil && info.Waiters+n > 0
	})
	lease.Unlock(t.Context())
	if n, others := q.refusals(); n > 0 || others != nil {
		t.Fatalf("got %d refusals, %v, want none", n, others)
	}
	q.wait(done, 1)
}

func TestTheLastAttemptWaitsForTheStore(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	done := make(chan struct{}, 1)
	stop := q.store.Every(asynclocktest.Acquire.Any, asynclocktest.Refuse)
	defer stop()
	q.newHost(func(context.Context, *asynq.Task) error { done <- struct{}{}; return nil }, asynclock.WithTTL(asynclock.MinTTL))
	q.enqueue(1, asynq.MaxRetry(0))
	const patience = time.Second // of a request with this TTL
	kit.Eventually(t, "the task has tried for a while", func() bool {
		calls := q.store.Calls(asynclocktest.Acquire.Any)
		n, _ := q.refusals()
		return len(calls) > 0 && time.Since(calls[0].At) > 2*patience || n > 0
	})
	stop()
	if n, others := q.refusals(); n > 0 || others != nil {
		t.Fatalf("got %d refusals, %v, want none", n, others)
	}
	q.wait(done, 1)
}

// A task that waits does not hold up the end of its server for longer than asynq allows.
func TestAWaitEndsWithTheTasksContext(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	lease, err := adapterkit.NewClient(t, q.store).Lock(t.Context(), "account:a")
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Unlock(t.Context())
	q.newHost(func(ctx context.Context, _ *asynq.Task) error { return adapterkit.Never(t)(ctx) })
	q.enqueue(1, asynq.MaxRetry(0), asynq.Timeout(time.Second))
	kit.Eventually(t, "asynq is told", func() bool {
		_, others := q.refusals()
		return errors.Is(others, context.DeadlineExceeded)
	})
}
