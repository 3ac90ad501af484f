// SPDX-License-Identifier: Apache-2.0

// Package riverlock lets River work one job per key at a time, on all hosts together: the jobs of one account for
// example. It is a middleware for workers:
//
//	perAccount, err := riverlock.PerKey(locks, accountOf, 10*time.Second)
//	…
//	client, err := river.NewClient(driver, &river.Config{
//		Middleware: []rivertype.Middleware{perAccount},
//		…
//	})
//
// A job whose key is held is snoozed: it uses up no attempt and no worker, and comes again later. So jobs of a key
// are worked in no particular order. With [asynclock.WithWait] a job first waits for the key for that long, on its
// worker.
//
// # What happens if
//
//   - another job has the key: this one is snoozed.
//   - the store can't be reached, or is in its grace: this one is snoozed, too, after a third of the TTL at the
//     latest. So an outage uses up no attempts. The client's log has it.
//   - the request can never succeed, for example because the key is too long or the user has no rights: the job
//     fails, and River's ErrorHandler is called.
//   - the lease is lost while the job runs: the context of the worker ends, with the lease's error as its cause. If
//     the worker fails then, the job's error matches [asynclock.ErrLost], and River retries it. If the worker
//     returns nil, the job is complete, because it would be done twice otherwise. The client's log has the loss.
//   - Unlock fails: the key is free after the TTL at the latest. The job's result stays as it is.
//   - the worker panics: the key is unlocked.
//   - the process dies: the key is free after the TTL. River rescues the job later.
//
// River works a job at least once, with or without locks. A lease's token protects what the job writes:
// asynclock.LeaseFrom finds it in the worker's context.
package riverlock
