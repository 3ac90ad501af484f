// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// These are the peers of a pipeline.
const (
	oneByOne       = "Lock, work, Unlock"
	lockWithUnlock = "next Lock with Unlock"
	lockAhead      = "next Lock before work"
)

// pipeline is one worker that does one short job after another, each under a key of its own. It
// measures the gain from asynclock's futures, with the nearest possible server or with one that is
// off away in each direction.
func pipeline(size sizes, off time.Duration) workload {
	name, title := "pipeline", "One worker, job after job, each under its own key"
	if off > 0 {
		name, title = name+" far", fmt.Sprintf("%s; the server is %v away", title, off)
	}
	return workload{
		name: name, title: title,
		metrics: []metric{{"rate", "jobs/s", true}},
		base:    oneByOne,
		peers: []peer{
			{name: oneByOne, setting: "asynclock, one thing after the other", is: traits{own: true}},
			{name: lockWithUnlock, setting: "asynclock, LockChan of the next job's key and UnlockChan of this one's at once", is: traits{own: true}},
			{name: lockAhead, setting: "asynclock, LockChan of the next job's key before this one is worked on", is: traits{own: true}},
		},
		prepare: func(_ context.Context, s *stage) round {
			if off > 0 {
				s.dial = far(off)
			}
			c := openAsynclock(s.world)
			s.after(c.close)
			return func(ctx context.Context) []float64 {
				start, done := time.Now(), 0
				if s.peer.name == oneByOne {
					done = c.jobsOneByOne(ctx, size.window)
				} else {
					done = c.jobsInAdvance(ctx, size.window, s.peer.name == lockAhead)
				}
				return []float64{float64(done) / time.Since(start).Seconds()}
			}
		},
	}
}

func jobKey(n int) string { return "bench:job:" + strconv.Itoa(n) }

// work takes as long as a small request to a database.
func work() {
	for start := time.Now(); time.Since(start) < 50*time.Microsecond; {
	}
}

func (c *client) jobsOneByOne(ctx context.Context, window time.Duration) (done int) {
	for start := time.Now(); time.Since(start) < window; done++ {
		lease := must(c.locks.Lock(ctx, jobKey(done)))
		work()
		check(lease.Unlock(ctx))
	}
	return done
}

// jobsInAdvance requests the next job's key when a job's key is given back, or ahead of the work. It
// holds two keys then.
func (c *client) jobsInAdvance(ctx context.Context, window time.Duration, ahead bool) (done int) {
	unlocked := make(<-chan error)
	next := c.locks.LockChan(ctx, jobKey(0))
	for start := time.Now(); time.Since(start) < window; done++ {
		lease := must((<-next).Lease())
		if done > 0 {
			check(<-unlocked)
		}
		if ahead {
			next = c.locks.LockChan(ctx, jobKey(done+1))
		}
		work()
		unlocked = lease.UnlockChan(ctx)
		if !ahead {
			next = c.locks.LockChan(ctx, jobKey(done+1))
		}
	}
	check(must((<-next).Lease()).Unlock(ctx)) // a job that is no longer done
	check(<-unlocked)
	return done
}
