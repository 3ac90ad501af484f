// SPDX-License-Identifier: Apache-2.0

// Package cronlock runs the jobs of robfig/cron v3 on one host at a time. Each host has the same jobs, and all
// hosts lock in the same store:
//
//	locker, err := cronlock.New(ctx, locks, cron.DefaultLogger)
//	…
//	once, err := locker.Once("report", asynclock.WithMinHold(50*time.Second))
//	…
//	id, err := crontab.AddJob("* * * * *", cron.NewChain(once).Then(job))
//
// cron gives its jobs neither a name nor a context. So each job has a key of its own, and [Locker.Job] makes
// jobs that know their lease.
//
// # The interval
//
// A lock lasts as long as the job. The hosts' clocks differ, so a fast job is over when the next host begins,
// and would run there, too. WithMinHold keeps the key until then. Choose less than the interval, and more
// than the clocks may differ by.
//
// # What happens if
//
//   - another host has the key: the job is skipped, and never waits. The logger has an Info line with the
//     holder. A job that waited would run a second time.
//   - the store can't be reached: the job is skipped, after a third of the TTL at the latest. The logger
//     has the error.
//   - the lease is lost while the job runs: the context of a [Locker.Job] ends. A plain job goes on,
//     because it can't be told. The logger has the error when either is over.
//   - Unlock fails: the key is free after the TTL at the latest. The logger has the error if it says that
//     the lease was lost.
//   - the job panics: the key is unlocked. cron.Recover, if it is there, sees the panic.
//   - the process dies: the key is free after the TTL, also before the minimum hold is over.
package cronlock
