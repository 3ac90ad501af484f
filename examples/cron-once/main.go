// SPDX-License-Identifier: Apache-2.0

// Command cron-once has a scheduler on each of two hosts, and a daily report that one of them sends. The program
// shows three days: on one, both schedulers call at the same time. On another, the first to call loses its lease
// at work. On the last, the report fails.
//
// Use it for jobs that every host has in its crontab, and that should run once in each interval. once.Do is for
// timers that you have already. once.Every is the timer, too: it is all that a host needs.
//
// If the lease is lost, or the process dies, the next call in the same interval is another attempt. The context
// ends the job. A job that goes on regardless shows its token, and the archive refuses a report with an older one
// than the last. A job that returns an error has run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/once"
	"github.com/asynclock/asynclock-go/store/memstore"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

func main() {
	url := flag.String("redis", "", "where the locks are, as redis://localhost:6379; without it: in this process")
	job := flag.String("job", "report", "the job's name; in a Redis that keeps the runs of yesterday's name, choose another")
	flag.Parse()
	if err := run(context.Background(), connector(*url), *job); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, connect func() (*asynclock.Client, error), job string) error {
	var hosts [2]*host
	var reports archive
	for i := range hosts {
		locks, err := connect()
		if err != nil {
			return err
		}
		defer locks.Close(ctx)
		hosts[i] = &host{fmt.Sprint("host ", i+1), locks, &reports}
	}
	for day, show := range []func(context.Context, string, [2]*host) error{both, lost, failed} {
		key := fmt.Sprintf("%s:%d", job, day+1) // each day of this program is a job of its own, because time is short
		fmt.Printf("day %d\n", day+1)
		if err := show(ctx, key, hosts); err != nil {
			return err
		}
	}
	fmt.Println("reports sent:", reports.sent)
	return nil
}

// both lets the timers of both hosts be due at the same time.
func both(ctx context.Context, key string, hosts [2]*host) error {
	var outcomes [2]once.Outcome
	var errs [2]error
	var calls sync.WaitGroup
	for i, h := range hosts {
		calls.Go(func() { outcomes[i], errs[i] = h.do(ctx, key, h.report) })
	}
	calls.Wait()
	fmt.Println("  both hosts call, and one runs it:", outcomes[0].Ran != outcomes[1].Ran)
	return errors.Join(errs[:]...)
}

// lost lets the first host lose its lease at work.
func lost(ctx context.Context, key string, hosts [2]*host) error {
	_, err := hosts[0].do(ctx, key, func(ctx context.Context, run once.Run) error {
		if _, err := hosts[1].locks.ForceUnlock(ctx, key, run.Lease.Token()); err != nil { // as an operator would
			return err
		}
		<-ctx.Done()
		return hosts[0].report(ctx, run)
	})
	fmt.Println("  host 1 loses its lease at work:", errors.Is(err, asynclock.ErrLost))
	for _, i := range []int{1, 0} {
		if err := hosts[i].tell(ctx, key, hosts[i].report); err != nil {
			return err
		}
	}
	return nil
}

// failed has a report that can't be made.
func failed(ctx context.Context, key string, hosts [2]*host) error {
	errNoData := errors.New("no data")
	err := hosts[0].tell(ctx, key, func(context.Context, once.Run) error { return errNoData })
	if !errors.Is(err, errNoData) {
		return err
	}
	if err := hosts[1].tell(ctx, key, hosts[1].report); err != nil {
		return err
	}
	last, err := once.LastRun(ctx, hosts[1].locks, key)
	fmt.Printf("  the record of the run: failed %t, %s\n", last.Failed, last.Message)
	return err
}

// A host has a timer, and calls do when that fires.
type host struct {
	name    string
	locks   *asynclock.Client
	reports *archive
}

func (h *host) do(ctx context.Context, key string, job func(context.Context, once.Run) error) (once.Outcome, error) {
	return once.Do(ctx, h.locks, key, 24*time.Hour, job, once.WithOffset(3*time.Hour)) // at 3:00 UTC
}

// tell prints what a call did.
func (h *host) tell(ctx context.Context, key string, job func(context.Context, once.Run) error) error {
	outcome, err := h.do(ctx, key, job)
	switch {
	case outcome.Ran:
		fmt.Printf("  %s runs it, attempt %d\n", h.name, outcome.Last.Attempt)
	case outcome.Running:
		fmt.Printf("  %s skips it, because another host is at it\n", h.name)
	case err == nil:
		fmt.Printf("  %s skips it, because it has run\n", h.name)
	}
	return err
}

// report is the job.
func (h *host) report(ctx context.Context, run once.Run) error {
	if ctx.Err() != nil { // ask where the work can stop
		return context.Cause(ctx)
	}
	return h.reports.send(ctx, run.Lease)
}

// An archive stands for the database that a report goes to. It refuses a token that is older than the last.
type archive struct {
	gate fence.Gate
	sent int
}

func (a *archive) send(ctx context.Context, lease fence.Holder) error {
	return a.gate.Do(ctx, lease, func() error { a.sent++; return nil })
}

// connector returns what makes the client of a process: of the Redis at url, or, without one, of a store in
// memory, which all clients share as they would a server.
func connector(url string) func() (*asynclock.Client, error) {
	if url == "" {
		store := memstore.New()
		return func() (*asynclock.Client, error) { return asynclock.New(store) }
	}
	return func() (*asynclock.Client, error) {
		store, err := redisstore.OpenURL(url)
		if err != nil {
			return nil, err
		}
		return asynclock.New(store, asynclock.WithOwnedStore())
	}
}
