// SPDX-License-Identifier: Apache-2.0

// Package asynqlock lets asynq process one task per key at a time, on all hosts together: the tasks of one account
// for example. asynq itself can only keep a second task out of the queue (asynq.Unique). The lock is a middleware:
//
//	locker, err := asynqlock.PerKey(locks, accountOf, 10*time.Second)
//	…
//	server := asynq.NewServer(redis, locker.Configure(asynq.Config{Concurrency: 10}))
//	mux := asynq.NewServeMux()
//	mux.Use(locker.Middleware)
//
// A task whose key is held is retried after the delay, and that counts neither as a retry nor as a failure. So tasks
// of a key are processed in no particular order. Without [Locker.Configure] it would count as both. asynq forwards
// tasks that are due every Config.DelayedTaskCheckInterval, five seconds by default.
//
// asynq archives a task whose last retry ends with any error. So on its last attempt a task waits for its key, on its
// worker, as long as its context lasts. For a task with asynq.MaxRetry(0) each attempt is the last one.
//
// # What happens if
//
//   - another task has the key: this one fails with [ErrNotBegun] and comes again. asynq calls Config.ErrorHandler.
//   - the store can't be reached, or is in its grace: likewise, after a third of the TTL at the latest. So an outage uses
//     up no retries.
//   - the request can never succeed, for example because the key is too long or the user has no rights: the task
//     fails as by any other error.
//   - the lease is lost while the task is processed: the handler's context ends, with the lease's error as its cause.
//     If the handler fails then, the task's error matches [asynclock.ErrLost], and asynq retries it. If the handler
//     returns nil, the task is done, because it would be done twice otherwise. The client's log has the loss.
//   - Unlock fails: the key is free after the TTL at the latest. The task's result stays as it is.
//   - the handler panics: the key is unlocked.
//   - the process dies: the key is free after the TTL. asynq recovers the task later.
//   - asynq gives up a handler that goes on, for example after asynq.Timeout: the handler keeps the key until it
//     returns, so that no other task of the key begins meanwhile.
//
// asynq processes a task at least once, with or without locks. A lease's token protects what the task writes:
// asynclock.LeaseFrom finds it in the handler's context.
package asynqlock
