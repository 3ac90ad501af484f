// SPDX-License-Identifier: Apache-2.0

// Package once runs a job once in each interval, in one of any number of processes.
//
//	outcome, err := once.Do(ctx, locks, "report", 24*time.Hour, func(ctx context.Context, run once.Run) error {
//		return sendReport(ctx, run.Start, run.Lease.Token())
//	})
//
// Every process calls [Do] by a timer of its own, or leaves the timer to [Every]. One of them runs the
// job. The others learn who has. A record of the last run stays in the store, in the note of the key
// ([asynclock.Lease.SetNote]). So a run is not repeated in its interval, although the key is free again.
//
// # Intervals
//
// Intervals are counted on the store's clock, from 1970 or from [WithOffset]. They are the same for all
// processes. A call shortly before an interval begins counts for that interval: a tenth of it, at most
// 30 s. Timers of processes may differ by that much, and none misses an interval because its timer was
// early.
//
// Two runs can be close to each other, at the end of one interval and the beginning of the next. So calls
// must not come close to where an interval begins to count: half a minute, or a tenth of the interval, before
// its beginning. Otherwise one process may call before that moment and another one after it, and both run the
// job. [WithOffset] moves the moment.
//
// The key of a process that died is free after the TTL: that of the client, but a third of the interval at most. Calls
// that come later in the interval run the job again. A longer TTL in [WithLockOptions] counts as it is. If it is not
// shorter than the interval, the job of a process that died is not repeated in its interval.
//
// For a least distance between starts, use TryLock with [asynclock.WithMinHold]. Use the same for schedules
// that are no fixed distance apart, as those of a cron library are in months and in summer time.
//
// # What can go wrong
//
// While the job runs, its process has the lease of the key, which is renewed. If the process dies, or loses
// the lease, the next call in the same interval runs the job again, as attempt 2. [WithAttempts](1) makes it
// run at most once. A job that returns an error has run: it is not repeated in its interval. Repeat inside
// the job what may fail for a moment. A process that was paused may act after its lease was lost, so give the lease's
// token to what the job writes to. If the store loses data, a job may run twice in an interval, as a lock may have two
// holders.
//
// If the store's clock is set back, no interval gets a second run. The record has the latest run, and the last
// stretch of intervals without one. So if the clock was ahead for some runs, the job runs again as soon as it is
// right. In other cases nothing runs before the clock has reached the recorded interval: the run with the wrong
// clock was the first one, or the record had expired by that clock, after a week or three intervals. After a change to longer
// intervals the run of the last shorter one counts for the longer one that it was in.
//
// # Counts
//
// [WithStats] counts what the calls of this process came to: [Stats.Counts] says whether the job runs, whether it fails,
// what was missed, and how long it takes. [LastRun] says the same of the last run in any process.
//
// # Releases
//
// Processes of two releases may run side by side, as while a program is updated. If the record is of a later release, an
// earlier one does not run the job in the recorded interval, not even as another attempt. It runs the job in
// the intervals after, like any other process. If the record does not say when its interval began, processes
// of the earlier release don't run the job as long as that record is the last one.
//
// # Stores
//
// The store must have notes: Redis, SQL, memory. In others every call fails with
// [asynclock.ErrUnsupported]. Do costs one request if the job was done already, and six if it runs.
package once
