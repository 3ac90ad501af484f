// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
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
		rounds:  size.rounds,
		base:    "Lock, work, Unlock",
		peers: []peer{
			{name: "Lock, work, Unlock", setting: "asynclock, one thing after the other", open: asynclockPeer.open},
			{name: "next Lock with Unlock", setting: "asynclock, LockChan of the next job's key and UnlockChan of this one's at once", open: asynclockPeer.open},
			{name: "next Lock before work", setting: "asynclock, LockChan of the next job's key before this one is worked on", open: asynclockPeer.open},
		},
		prepare: func(ctx context.Context, w world, p peer) (runner, error) {
			if off > 0 {
				w.dial = far(off)
			}
			c, err := openAsynclock(w)
			if err != nil {
				return nil, err
			}
			run := map[string]func(context.Context, *asynclock.Client, time.Duration) (int, error){
				"Lock, work, Unlock": oneByOne, "next Lock with Unlock": lockWithUnlock, "next Lock before work": lockAhead,
			}[p.name]
			return &jobs{c, size.window, run}, nil
		},
	}
}

type jobs struct {
	client *asynclockClient
	window time.Duration
	run    func(ctx context.Context, locks *asynclock.Client, window time.Duration) (done int, err error)
}

func (j *jobs) round(ctx context.Context) ([]float64, error) {
	start := time.Now()
	done, err := j.run(ctx, j.client.locks, j.window)
	return []float64{float64(done) / time.Since(start).Seconds()}, err
}

func (j *jobs) close(ctx context.Context) error { return j.client.close(ctx) }

func jobKey(n int) string { return "bench:job:" + strconv.Itoa(n) }

// work takes as long as a small request to a database.
func work() {
	for start := time.Now(); time.Since(start) < 50*time.Microsecond; {
	}
}

func oneByOne(ctx context.Context, locks *asynclock.Client, window time.Duration) (done int, err error) {
	for start := time.Now(); time.Since(start) < window; done++ {
		lease, err := locks.Lock(ctx, jobKey(done))
		if err != nil {
			return done, err
		}
		work()
		if err := lease.Unlock(ctx); err != nil {
			return done, err
		}
	}
	return done, nil
}

// lockWithUnlock holds no key before its job begins.
func lockWithUnlock(ctx context.Context, locks *asynclock.Client, window time.Duration) (done int, err error) {
	var unlocked <-chan error
	next := locks.LockChan(ctx, jobKey(0))
	for start := time.Now(); time.Since(start) < window; done++ {
		lease, err := (<-next).Lease()
		if err != nil {
			return done, err
		}
		if err := outcomeOf(unlocked); err != nil {
			return done, err
		}
		work()
		unlocked = lease.UnlockChan(ctx)
		next = locks.LockChan(ctx, jobKey(done+1))
	}
	return done, finish(ctx, next, unlocked)
}

// lockAhead holds the next key for the duration of the present job.
func lockAhead(ctx context.Context, locks *asynclock.Client, window time.Duration) (done int, err error) {
	var unlocked <-chan error
	next := locks.LockChan(ctx, jobKey(0))
	for start := time.Now(); time.Since(start) < window; done++ {
		lease, err := (<-next).Lease()
		if err != nil {
			return done, err
		}
		if err := outcomeOf(unlocked); err != nil {
			return done, err
		}
		next = locks.LockChan(ctx, jobKey(done+1))
		work()
		unlocked = lease.UnlockChan(ctx)
	}
	return done, finish(ctx, next, unlocked)
}

// outcomeOf waits for an unlock, if there is one.
func outcomeOf(unlocked <-chan error) error {
	if unlocked == nil {
		return nil
	}
	return <-unlocked
}

// finish ends the requests for a job that is no longer done.
func finish(ctx context.Context, next <-chan asynclock.Result, unlocked <-chan error) error {
	lease, err := (<-next).Lease()
	if err != nil {
		return err
	}
	if err := lease.Unlock(ctx); err != nil {
		return err
	}
	return outcomeOf(unlocked)
}
