// SPDX-License-Identifier: Apache-2.0

// Command leader has two candidates for one leadership, and an observer that follows who leads. The program takes
// the leadership from one candidate by force, as an operator would, and shuts the other down.
//
// Use it for work that one process has to do all the time, and another one as soon as that process is gone: a
// scheduler, a poller, a compactor. For a job now and then, package once is simpler.
//
// If the term is lost, the leader's context ends, and the candidate campaigns anew. A leader that goes on regardless
// shows the number of its term to whatever it writes to, which refuses an older number than the last. The
// knowledge of an observer is late, and proves nothing there.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/elect"
	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/store/memstore"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

const key = "scheduler"

func main() {
	url := flag.String("redis", "", "where the locks are, as redis://localhost:6379; without it: in this process")
	flag.Parse()
	if err := run(context.Background(), connector(*url)); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, connect func() (*asynclock.Client, error)) error {
	ctx, cancel := context.WithCancel(ctx) // ends the observer, and candidates that are left after an error
	defer cancel()
	locks, err := connect()
	if err != nil {
		return err
	}
	defer locks.Close(ctx)
	leaders, err := elect.Observe(ctx, locks, key, elect.WithInterval(elect.MinInterval))
	if err != nil {
		return err
	}
	plan := schedule{wrote: make(chan int64, 16)}
	await := func(address, why string) (elect.Leader, error) {
		for leader := range leaders {
			if string(leader.Value) == address && (address != "" || leader.Token == 0) {
				fmt.Printf("%-14s leads: %s\n", cmp.Or(address, "nobody"), why)
				return leader, plan.await(ctx, leader.Token)
			}
		}
		return elect.Leader{}, errors.New("the observation has ended")
	}

	first, err := start(ctx, connect, "10.0.0.1:8080", &plan)
	if err != nil {
		return err
	}
	leader, err := await(first.address, "it is alone")
	if err != nil {
		return err
	}
	second, err := start(ctx, connect, "10.0.0.2:8080", &plan)
	if err != nil {
		return err
	}
	if err := awaitCandidate(ctx, locks); err != nil {
		return err
	}
	if _, err := locks.ForceUnlock(ctx, key, leader.Token); err != nil {
		return err
	}
	if _, err := await(second.address, "the first one's term was taken by force"); err != nil {
		return err
	}
	if err := second.shutDown(); err != nil {
		return err
	}
	if _, err := await(first.address, "the second one has shut down"); err != nil {
		return err
	}
	if err := first.shutDown(); err != nil {
		return err
	}
	_, err = await("", "both have shut down")
	fmt.Println("terms that wrote:", plan.terms)
	return err
}

// awaitCandidate waits until somebody waits for the leadership.
func awaitCandidate(ctx context.Context, locks *asynclock.Client) error {
	for {
		info, err := locks.Inspect(ctx, key)
		if err != nil || info.Waiters > 0 {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// A candidate is a process that can lead.
type candidate struct {
	address string
	stop    context.CancelFunc
	done    chan error
}

// start starts a candidate, which runs until it is shut down.
func start(ctx context.Context, connect func() (*asynclock.Client, error), address string, plan *schedule) (*candidate, error) {
	locks, err := connect()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	c := &candidate{address, stop, make(chan error, 1)}
	go func() {
		err := elect.Run(ctx, locks, key, plan.lead, elect.WithValue([]byte(address)))
		if errors.Is(err, context.Canceled) {
			err = nil // it was shut down
		}
		c.done <- errors.Join(err, locks.Close(context.Background()))
	}()
	return c, nil
}

func (c *candidate) shutDown() error {
	c.stop()
	return <-c.done
}

// A schedule stands for your database, and refuses the number of an earlier term.
type schedule struct {
	gate  fence.Gate
	terms int        // how many have written
	wrote chan int64 // their numbers
}

// lead is the leader's work. It returns as soon as ctx ends, because the leadership is passed on only then.
func (s *schedule) lead(ctx context.Context, term *elect.Term) error {
	if err := s.gate.Do(ctx, term, func() error { s.terms++; return nil }); err != nil {
		return err
	}
	select {
	case s.wrote <- term.Token():
	case <-ctx.Done():
	}
	<-ctx.Done()
	return nil
}

// await waits until a term has written. Without a term, there is nothing to wait for.
func (s *schedule) await(ctx context.Context, term int64) error {
	for number := int64(0); number < term; {
		select {
		case number = <-s.wrote:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
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
