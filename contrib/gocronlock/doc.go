// SPDX-License-Identifier: Apache-2.0

// Package gocronlock runs the jobs of gocron v2 on one host at a time. Each host has a scheduler with the
// same jobs, and all schedulers lock in the same store:
//
//	locker, err := gocronlock.New(locks, "billing:", asynclock.WithMinHold(50*time.Second))
//	…
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//
// The key of a job is the prefix and the job's name. Name each job with gocron.WithName: gocron's default
// is the name of the Go function, which changes when the code is moved.
//
// # The interval
//
// A lock lasts as long as the job. The schedulers' tickers start at different moments, so a fast job
// is over when the next ticker fires, and would run on each host in each interval. WithMinHold keeps the
// key until then. Choose a little less than the interval, nine tenths for example. With the whole
// interval, a ticker that fires a moment early would be refused, and the job left out once.
//
// # What happens if
//
//   - another host has the key: the job is skipped, and never waits. gocron counts a skip and calls
//     AfterLockError with an error that matches [asynclock.ErrHeld]. A job that waited would run a
//     second time.
//   - the store can't be reached: the job is skipped likewise. The error matches
//     [asynclock.ErrUnreachable], after a third of the TTL at the latest.
//   - the lease is lost while the job runs: gocron has no means of telling a plain function. Use
//     [Locker.Task], whose context ends with the lease.
//   - Unlock fails: gocron drops the error. The key is free after the TTL at the latest. A Task
//     returns the error if it says that the lease was lost.
//   - the process dies: the key is free after the TTL, also before the minimum hold is over.
//
// gocron does not ask a locker if the scheduler has an elector.
package gocronlock
